//! An example with two loops of a crate, each with waits that can be removed and without them: a decoder that makes one token an
//! iteration, and a training loop.
//!
//! Without arguments it compares each with its mended version, in turn. `decode waiting` and the like run one of them, to be
//! audited.

use std::process::ExitCode;

use syncscope::device::Device;
use syncscope::measure::{Compared, Protocol, Sampler};

use crate::Result;

/// How long the vector of a word is.
pub const WIDTH: usize = 512;
/// How many words there are.
pub const WORDS: usize = 4096;
/// How many layers the decoder has.
pub const LAYERS: usize = 4;
/// How many tokens it makes.
pub const TOKENS: usize = 64;
/// How many images are trained on at once.
pub const BATCH: usize = 256;
/// How many classes of images there are.
pub const CLASSES: usize = 10;
/// How many steps a training has.
pub const STEPS: usize = 50;
/// To which length all gradients together are shortened.
pub const LONGEST_GRADIENT: f64 = 1.0;

/// How often a loop is run to be audited.
const AUDITED: usize = 10;

/// The sum of the losses, and how many images were given their class.
pub type Log = [f32; 2];

/// The loops of a crate, with random weights.
pub trait Loops: Sized {
    /// The name of the example.
    const NAME: &'static str;

    /// Makes the weights and the data on the first GPU.
    ///
    /// # Errors
    /// The crate's own, here and below.
    fn new() -> Result<Self>;

    /// Each iteration checks the logits, reads them all to choose a word, and waits for the device to time itself.
    fn waiting_decoder(&self) -> Result<Vec<u32>>;

    /// The device chooses the word, the check is added up there, and both are read at the end.
    fn mended_decoder(&self) -> Result<Vec<u32>>;

    /// Each step reads the loss and the accuracy for a log, and the length of the gradients to shorten them.
    fn waiting_training(&self) -> Result<Log>;

    /// The log is added up on the device and read at the end, and the gradients are shortened there.
    fn mended_training(&self) -> Result<Log>;
}

/// Runs what the arguments name.
pub fn main<L: Loops>() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run::<L>(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run<L: Loops>(arguments: &[&str]) -> Result<()> {
    // The library says what is missing on a machine without a GPU.
    Device::open("cuda:0")?;
    let loops = L::new()?;
    let audited = |run: &dyn Fn() -> Result<()>| (0..AUDITED).try_for_each(|_| run());
    match arguments {
        [] => compare(&loops),
        ["decode", "waiting"] => audited(&|| loops.waiting_decoder().map(drop)),
        ["decode", "mended"] => audited(&|| loops.mended_decoder().map(drop)),
        ["train", "waiting"] => audited(&|| loops.waiting_training().map(drop)),
        ["train", "mended"] => audited(&|| loops.mended_training().map(drop)),
        _ => Err(format!("usage: {} [decode|train waiting|mended]", L::NAME).into()),
    }
}

/// Prints how long each loop takes in both versions, which do the same.
fn compare(loops: &impl Loops) -> Result<()> {
    if loops.waiting_decoder()? != loops.mended_decoder()? {
        return Err("the two decoders differ".into());
    }
    let logs = [loops.waiting_training()?, loops.mended_training()?];
    if (0..2).any(|place| (logs[0][place] - logs[1][place]).abs() > 1e-3 * logs[0][place].abs()) {
        return Err(format!("the logs of the two training loops differ: {logs:?}").into());
    }
    let sampler = Sampler::new(Protocol::samples(20));
    println!("{TOKENS} tokens:");
    let decoders = (("waiting", || loops.waiting_decoder()), ("mended", || loops.mended_decoder()));
    say(&sampler.compare(decoders)?);
    println!("\n{STEPS} steps of training:");
    let trainings = (("waiting", || loops.waiting_training()), ("mended", || loops.mended_training()));
    say(&sampler.compare(trainings)?);
    Ok(())
}

/// Prints the times of both versions, and their difference.
fn say(compared: &Compared) {
    for comparison in compared.iter() {
        let (waiting, mended) = comparison.samples();
        for samples in [waiting, mended] {
            println!("{}: {}", samples.name(), samples.estimate().format(samples.unit()));
        }
        println!("{comparison}");
    }
}
