//! MPI alone (`bench/peers/mpi`), and nodes connected by MPI.

use crate::{build, process};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUN_SECONDS_MAX: u32 = 300;
/// SOR as the nodes compute it: rows, columns, rounds.
const SOR: [&str; 3] = ["1024", "1536", "100"];

/// The network of MPI's messages.
#[derive(Debug, Clone, Copy)]
pub(super) enum Network {
    /// As between nodes.
    Tcp,
    /// Shared memory, MPI's default on one machine.
    Memory,
}

/// The peer, built.
#[derive(Debug)]
pub(super) struct Mpi {
    peer: PathBuf,
}

impl Mpi {
    /// Builds the peer.
    ///
    /// # Errors
    /// What is not measured without it, the reason, and what to install.
    pub(super) fn build(into: &Path) -> Result<Self, String> {
        let peer = into.join("mpi");
        let mut compiler = Command::new("mpicc");
        let built =
            build::finish(compiler.args(["-O3", "bench/peers/mpi/main.c", "-o"]).arg(&peer));
        built.map(|()| Self { peer }).map_err(|why| {
            format!(
                "not measured beside MPI: {why}; install libopenmpi-dev, openmpi-bin, libclang-dev"
            )
        })
    }

    /// MPI's own figures, of two processes.
    ///
    /// # Errors
    /// The run fails.
    pub(super) fn alone(
        &self,
        network: Network,
        turns: &str,
    ) -> Result<Vec<(String, f64)>, String> {
        let mut command = job(network);
        let run = process::run(command.arg(&self.peer).arg(turns).args(SOR))?;
        Ok(super::figures_of(&run.output))
    }

    /// Output of a program on two nodes connected by MPI over shared memory.
    ///
    /// # Errors
    /// The run fails.
    pub(super) fn nodes(&self, kyocho: &Path, program: &[&OsStr]) -> Result<String, String> {
        let mut command = job(Network::Memory);
        command.arg(kyocho).args(["dsm", "run", "--transport", "mpi", "--"]).args(program);
        Ok(process::run(&mut command)?.output)
    }
}

/// `mpirun -n 2`, to be followed by a program. The variables are Open MPI's; others do not read
/// them.
fn job(network: Network) -> Command {
    let mut command = process::limited(Path::new("mpirun"), RUN_SECONDS_MAX);
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ] {
        command.env(name, value);
    }
    if matches!(network, Network::Tcp) {
        command
            .env("OMPI_MCA_btl", "self,tcp")
            .env("OMPI_MCA_pml", "ob1")
            .env("OMPI_MCA_osc", "pt2pt,rdma");
    }
    command.args(["-n", "2"]);
    command
}
