//! `kyocho paper`: finds the source tree, whose benches measure what the papers published, and hands
//! over to `bench/paper` there.

use crate::terminal;
use clap::Args;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The program that measures, in the source tree.
const PROGRAM: &str = "bench/paper";

/// The options of `kyocho paper`.
#[derive(Debug, Args)]
pub(crate) struct Paper {
    /// Small sizes and two rounds, to see that everything runs: at most 10 minutes on two cores.
    #[arg(long)]
    quick: bool,
    /// Only these: the number of a paper, or a table or figure. May be several, with commas.
    #[arg(long, value_name = "ID")]
    only: Option<String>,
    /// How often everything is measured. Default: 3; with --quick 2.
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Print the values as JSON too.
    #[arg(long)]
    json: bool,
    /// The folder of the page, which is index.html there. Default: bench/out/paper in the source
    /// tree.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Measure nothing, and make the page from an earlier run: the folder `parts` beside its page.
    #[arg(long, value_name = "DIR")]
    measured: Option<PathBuf>,
    /// The source tree. Default: this folder, or the nearest folder above that is one.
    #[arg(long, value_name = "DIR")]
    source: Option<PathBuf>,
}

/// `kyocho paper`.
pub(crate) fn command(options: &Paper) -> ExitCode {
    let here = std::env::current_dir().unwrap_or_default();
    let Some(source) = source(options.source.as_deref(), &here) else {
        terminal::complain(
            "kyocho: paper builds and runs the benches of Kyocho's source tree, which is not here. \
             Run it inside a clone of the repository, or name one by --source DIR",
        );
        return ExitCode::from(2);
    };
    let mut program = Command::new(source.join(PROGRAM));
    program.args(options.quick.then_some("--quick")).args(options.json.then_some("--json"));
    program.args(options.only.iter().flat_map(|ids| ["--only", ids]));
    program.args(options.rounds.iter().flat_map(|count| ["--rounds".into(), count.to_string()]));
    // The program changes to the source tree.
    for (name, folder) in [("--out", &options.out), ("--measured", &options.measured)] {
        if let Some(folder) = folder {
            program.arg(name).arg(here.join(folder));
        }
    }
    let error = program.exec();
    terminal::complain(&format!("kyocho: {}: {error}", source.join(PROGRAM).display()));
    ExitCode::FAILURE
}

/// The named source tree, or the nearest one above `here`.
fn source(named: Option<&Path>, here: &Path) -> Option<PathBuf> {
    let is_source = |folder: &&Path| folder.join(PROGRAM).is_file();
    match named {
        Some(folder) => is_source(&folder).then(|| here.join(folder)),
        None => here.ancestors().find(is_source).map(Path::to_owned),
    }
}
