//! The machine of the measurement.

/// Processor model and count, kernel, and load of the machine, which affects every figure.
pub fn describe() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let models: Vec<_> = cpuinfo.lines().filter(|line| line.starts_with("model name")).collect();
    let model =
        models.first().and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown processor");
    let loadavg = read("/proc/loadavg");
    let load = loadavg.split(' ').next().unwrap_or_default();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!("{} x {model}, Linux {}, load average {load} before", models.len(), kernel.trim())
}
