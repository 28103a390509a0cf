//! `report peers`: shows what another program measured of the same work, and puts it beside a run.

use std::path::PathBuf;

use clap::Args;
use syncscope::present::peer_table;
use syncscope::run::{Peer, Run};

use crate::{End, UsageError};

/// Show what another program measured of the same work, or put it beside a run; needs no device
#[derive(Args)]
#[command(after_help = "\
The file is one such as book/peers/pytorch.py writes. Beside a run it gets a column in the tables of the book; it is \
refused where it was measured on another machine than the run.

Exit codes: 0, 2 where a file cannot be read or the peer is of another machine.

Examples:
  python3 book/peers/pytorch.py --out pytorch.json
  report peers pytorch.json --into results.json && report render results.json")]
pub(crate) struct Arguments {
    /// What the other program measured
    #[arg(value_name = "PEER.json")]
    peer: PathBuf,
    /// The results file to put it in; an earlier one of the same program gives way
    #[arg(long, value_name = "RESULTS.json")]
    into: Option<PathBuf>,
}

pub(crate) fn execute(arguments: Arguments) -> anyhow::Result<End> {
    let peer = Peer::read(&arguments.peer)?;
    let Some(results) = arguments.into else {
        println!("{}", peer_table(&peer).to_console());
        return Ok(End::Well);
    };
    let mut run = Run::read(&results)?;
    let (name, rows) = (peer.name.clone(), peer.rows.len());
    if let Err(mismatches) = run.put_peer(peer) {
        let lines: Vec<String> = mismatches.iter().map(|mismatch| format!("\n  {mismatch}")).collect();
        let (peer, results, lines) = (arguments.peer.display(), results.display(), lines.concat());
        return Err(UsageError(format!("{peer} was measured on another machine than {results}:{lines}")).into());
    }
    run.write(&results)?;
    println!("{name}: {rows} rows put into {}", results.display());
    Ok(End::Well)
}
