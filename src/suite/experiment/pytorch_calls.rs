//! `pytorch-calls`: which calls of PyTorch wait for the work before them, and what PyTorch's own debug mode says of them.
//!
//! The rows are declared here, so that there is one catalogue of rows, and have a meaning in PyTorch alone, but for the same
//! code twice.
//!
//! - *blocks*: the call came back only after a closed gate on its stream was opened: 1, else 0;
//! - *blocks-other*: the same, while the gate holds another stream;
//! - *ready*: the host's time in the call with nothing pending; *behind*: behind work of a millisecond on its stream;
//! - *warns*: PyTorch warns of the call where `torch.cuda.set_sync_debug_mode("warn")` is in force: 1, else 0. The call is made
//!   with nothing pending: the mode looks at what is called, not at what waits.
//! - *agrees*, *missed*, *false-alarm*: whether the two say the same, the call waits and the mode is silent, or the mode warns and
//!   the call does not wait.

use crate::experiment::prelude::*;

parameters! {
    /// Which calls of PyTorch wait.
    pub struct PytorchCalls {
        /// The calls, by the names that the script for PyTorch has for them.
        calls: Vec<String> = CALLS.map(str::to_owned).to_vec(),
    }
}

/// The calls, in the order of a page.
const CALLS: [&str; 36] = [
    "item",
    "tolist",
    "cpu",
    "cpu-numpy",
    "print",
    "any-in-if",
    "nonzero",
    "masked-select",
    "boolean-index",
    "boolean-assign-scalar",
    "boolean-assign-tensor",
    "unique",
    "where-one",
    "where-three",
    "index-by-host-tensor",
    "index-by-device-tensor",
    "tensor-on-device",
    "to-device-pageable",
    "to-device-pageable-non-blocking",
    "to-device-pageable-large-non-blocking",
    "to-device-pinned",
    "to-device-pinned-non-blocking",
    "to-host-non-blocking",
    "repeat-interleave",
    "repeat-interleave-sized",
    "multinomial",
    "empty-cache",
    "del-large",
    "event-synchronize",
    "wait-stream",
    "dataloader-pin-memory",
    "grad-scaler-step",
    "clip-grad-norm",
    "adam-step",
    "adam-step-capturable",
    "sum",
];

/// Why a row has no meaning here.
const PYTORCH: &str = "it is PyTorch's own call";

impl Experiment for PytorchCalls {
    const NAME: &'static str = "pytorch-calls";
    const SUMMARY: &'static str = "Which calls of PyTorch wait, and what its debug mode says of them";

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let mut group = Group::of("Calls of PyTorch behind a closed gate", []);
        for call in &self.calls {
            group = group
                .with_parameters([("call", call.as_str().into())])
                .foreign("pytorch-calls.blocks", "Waited for the gate", Unit::Ratio, PYTORCH)
                .foreign("pytorch-calls.blocks-other", "Waited for another stream", Unit::Ratio, PYTORCH)
                .foreign_time("pytorch-calls.ready", "Time of the call, nothing pending", PYTORCH)
                .foreign_time("pytorch-calls.behind", "Time of the call behind work", PYTORCH)
                .foreign("pytorch-calls.warns", "The debug mode warns", Unit::Ratio, PYTORCH);
            for (id, label, formula) in [
                ("pytorch-calls.agrees", "Both say the same", "blocks = warns"),
                ("pytorch-calls.missed", "It waits, and the mode is silent", "blocks · (1 − warns)"),
                ("pytorch-calls.false-alarm", "The mode warns, and it does not wait", "(1 − blocks) · warns"),
            ] {
                group = group.derived(id, label, Unit::Ratio, formula);
            }
        }
        // A call that does not wait, in each system.
        const ELEMENTS: usize = 1 << 16;
        let same = Group::of("The same code twice", [("elements", ELEMENTS.into())])
            .setup(|device| device.stream()?.ones::<f32>([ELEMENTS]))
            .twice(["pytorch-calls.same.a", "pytorch-calls.same.b", "pytorch-calls.same.ratio"], move |x| x.sum());
        vec![group.build(), same]
    }
}
