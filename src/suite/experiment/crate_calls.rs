//! `crate-calls`: which calls of Rust's GPU crates wait, and what they leave pending.
//!
//! The rows are declared here, so that there is one catalogue of rows, and have a meaning in the crate of their name alone, but for
//! the same code twice. The programs in `book/peers-rs` measure them.
//!
//! - *blocks*: the call came back only after a closed gate on its stream was opened: 1, else 0;
//! - *blocks-other*: the same, while the gate holds another stream. Of a call of cudarc on several streams that is the one which
//!   made the memory;
//! - *pending*: with nothing pending before it, the call came back before its own work on the stream was over: 1, else 0;
//! - *ready*: the host's time in the call with nothing pending; *behind*: behind work of a millisecond on its stream.
//!
//! burn hands what it is called for to a thread of its own, 32 tasks at a time, which launches later. So what a call leaves pending
//! is not seen there, and a call that did not wait may not have launched anything yet.
//!
//! cudarc notes by events which stream uses what, once a context has made a stream. The calls that this concerns are also measured
//! as *streams*, with its tracking on and off, on the default stream alone (`streams: 1`) and on the last of two and of eight streams, of which
//! the first made the memory.

use crate::experiment::prelude::*;

parameters! {
    /// Which calls of Rust's GPU crates wait.
    pub struct CrateCalls {
        /// The calls of cudarc, by the names that its program has for them.
        cudarc: Vec<String> = CUDARC.map(str::to_owned).to_vec(),
        /// Those of cudarc that are measured with event tracking on and off, on one stream and on several.
        tracked: Vec<String> = TRACKED.map(str::to_owned).to_vec(),
        /// The calls of candle.
        candle: Vec<String> = CANDLE.map(str::to_owned).to_vec(),
        /// The calls of burn.
        burn: Vec<String> = BURN.map(str::to_owned).to_vec(),
    }
}

/// The calls of cudarc, in the order of a page.
const CUDARC: [&str; 61] = [
    "alloc",
    "alloc-zeros",
    "memset-zeros",
    "clone-htod-4-bytes",
    "clone-htod",
    "clone-htod-large",
    "clone-htod-pinned",
    "memcpy-htod",
    "memcpy-htod-large",
    "memcpy-htod-pinned",
    "memcpy-htod-pinned-large",
    "clone-dtoh-4-bytes",
    "clone-dtoh",
    "clone-dtoh-large",
    "memcpy-dtoh",
    "memcpy-dtoh-pinned",
    "pinned-as-slice",
    "memcpy-dtod",
    "clone-dtod",
    "slice-try-clone",
    "slice-view",
    "drop",
    "drop-large",
    "drop-used-elsewhere",
    "drop-pinned",
    "alloc-pinned",
    "alloc-unified",
    "unified-as-slice",
    "drop-unified",
    "launch",
    "launch-timed",
    "launch-cooperative",
    "new-stream",
    "new-stream-first",
    "drop-stream",
    "fork",
    "join",
    "new-event",
    "event-record",
    "event-synchronize",
    "event-is-complete",
    "event-elapsed",
    "stream-wait",
    "stream-synchronize",
    "context-synchronize",
    "context-new",
    "mem-get-info",
    "compile-ptx",
    "load-module",
    "drop-module",
    "load-function",
    "function-num-regs",
    "capture",
    "graph-launch",
    "graph-upload",
    "drop-graph",
    "cublas-new",
    "cublas-gemm",
    "cublas-drop",
    "curand-new",
    "curand-uniform",
];

/// The calls of candle, in the order of a page.
const CANDLE: [&str; 72] = [
    "zeros",
    "ones",
    "full",
    "arange",
    "rand",
    "randn",
    "set-seed",
    "new-scalar",
    "from-slice",
    "from-slice-large",
    "from-vec",
    "to-device-cuda",
    "to-device-cpu",
    "to-device-cpu-large",
    "to-scalar",
    "get-to-scalar",
    "get-to-scalar-large",
    "to-vec1",
    "narrow-to-vec1",
    "narrow-to-vec1-large",
    "to-vec2",
    "display",
    "any-in-if",
    "drop",
    "drop-large",
    "clone",
    "copy",
    "detach",
    "to-dtype",
    "contiguous",
    "reshape",
    "transpose",
    "narrow",
    "i-range",
    "index-select",
    "index-select-host-rows",
    "embedding",
    "gather",
    "scatter-add",
    "index-add",
    "where-cond",
    "cat",
    "stack",
    "slice-set",
    "add",
    "broadcast-add",
    "affine",
    "exp",
    "gt",
    "sum-all",
    "mean",
    "max",
    "argmax",
    "cumsum",
    "sort",
    "matmul",
    "matmul-batched",
    "conv2d",
    "softmax",
    "softmax-last-dim",
    "rms-norm",
    "dropout",
    "cross-entropy",
    "backward",
    "sgd-step",
    "adamw-step",
    "var-set",
    "synchronize",
    "new-cuda-with-stream",
    "safetensors-load",
    "safetensors-load-mapped",
    "safetensors-save",
];

/// The calls of burn, in the order of a page.
const BURN: [&str; 88] = [
    "empty",
    "zeros",
    "ones",
    "full",
    "arange",
    "random",
    "random-normal",
    "seed",
    "from-floats",
    "from-data",
    "from-data-large",
    "from-data-staged",
    "from-data-staged-large",
    "staging",
    "to-device-same",
    "into-data",
    "into-data-large",
    "try-into-data",
    "into-data-async",
    "into-scalar",
    "try-into-scalar",
    "slice-into-scalar",
    "slice-into-data",
    "slice-into-data-large",
    "transaction-execute",
    "display",
    "any-in-if",
    "all-close",
    "contains-nan-in-if",
    "drop",
    "drop-large",
    "clone",
    "cast",
    "int",
    "reshape",
    "transpose",
    "narrow",
    "slice",
    "slice-assign",
    "slice-fill",
    "select",
    "select-host-rows",
    "select-assign",
    "embedding",
    "gather",
    "scatter",
    "mask-where",
    "mask-fill",
    "tril-mask",
    "nonzero",
    "argwhere",
    "one-hot",
    "cat",
    "stack",
    "add",
    "add-scalar",
    "exp",
    "greater-elem",
    "sum",
    "mean",
    "mean-dim",
    "max",
    "max-dim",
    "argmax",
    "any",
    "all",
    "cumsum",
    "sort",
    "topk",
    "topk-with-indices",
    "median",
    "matmul",
    "matmul-batched",
    "conv2d",
    "softmax",
    "categorical",
    "linear",
    "layer-norm",
    "dropout",
    "cross-entropy",
    "backward",
    "sgd-step",
    "adamw-step",
    "adamw-step-clipped",
    "sync",
    "memory-cleanup",
    "record-save",
    "record-load",
];

/// Those that cudarc's event tracking concerns.
const TRACKED: [&str; 8] =
    ["alloc-zeros", "memcpy-htod", "clone-dtoh", "memcpy-dtod", "clone-dtod", "launch", "drop", "drop-used-elsewhere"];

/// What is measured of each call.
const OF_CUDARC: [RowId; 5] = [
    "crate-calls.cudarc.blocks",
    "crate-calls.cudarc.blocks-other",
    "crate-calls.cudarc.pending",
    "crate-calls.cudarc.ready",
    "crate-calls.cudarc.behind",
];
const OF_TRACKED: [RowId; 5] = [
    "crate-calls.cudarc.streams.blocks",
    "crate-calls.cudarc.streams.blocks-other",
    "crate-calls.cudarc.streams.pending",
    "crate-calls.cudarc.streams.ready",
    "crate-calls.cudarc.streams.behind",
];
const OF_CANDLE: [RowId; 5] = [
    "crate-calls.candle.blocks",
    "crate-calls.candle.blocks-other",
    "crate-calls.candle.pending",
    "crate-calls.candle.ready",
    "crate-calls.candle.behind",
];
const OF_BURN: [RowId; 5] = [
    "crate-calls.burn.blocks",
    "crate-calls.burn.blocks-other",
    "crate-calls.burn.pending",
    "crate-calls.burn.ready",
    "crate-calls.burn.behind",
];

/// On how many streams those of cudarc are measured.
const STREAMS: [usize; 3] = [1, 2, 8];

impl Experiment for CrateCalls {
    const NAME: &'static str = "crate-calls";
    const SUMMARY: &'static str = "Which calls of Rust's GPU crates wait, and what they leave pending";

    fn groups(&self, _engine: &str) -> Vec<Group> {
        let mut groups = vec![
            rows("cudarc", &self.cudarc, OF_CUDARC),
            self.tracked(),
            rows("candle", &self.candle, OF_CANDLE),
            rows("burn", &self.burn, OF_BURN),
        ];
        // A call that does not wait, in each system.
        const ELEMENTS: usize = 1 << 16;
        let same = Group::of("The same code twice", [("elements", ELEMENTS.into())])
            .setup(|device| device.stream()?.ones::<f32>([ELEMENTS]))
            .twice(["crate-calls.same.a", "crate-calls.same.b", "crate-calls.same.ratio"], move |x| x.sum());
        groups.push(same);
        groups
    }
}

impl CrateCalls {
    fn tracked(&self) -> Group {
        let mut group = Group::of("Calls of cudarc on one stream and on several", []);
        for call in &self.tracked {
            for streams in STREAMS {
                for tracking in ["on", "off"] {
                    let parameters =
                        [("call", call.as_str().into()), ("streams", streams.into()), ("tracking", tracking.into())];
                    group = measured(group.with_parameters(parameters), OF_TRACKED);
                }
            }
        }
        group.build()
    }
}

/// The rows of a crate's calls.
fn rows(name: &str, calls: &[String], ids: [RowId; 5]) -> Group {
    let group = Group::of(&format!("Calls of {name} behind a closed gate"), []);
    let rows = |group: GroupBuilder<Device>, call: &String| {
        measured(group.with_parameters([("call", call.as_str().into())]), ids)
    };
    calls.iter().fold(group, rows).build()
}

/// What is measured of one call, under these identifiers.
fn measured(group: GroupBuilder<Device>, [blocks, other, pending, ready, behind]: [RowId; 5]) -> GroupBuilder<Device> {
    const REASON: &str = "it is a call of the crate";
    group
        .foreign(blocks, "Waited for the gate", Unit::Ratio, REASON)
        .foreign(other, "Waited for another stream", Unit::Ratio, REASON)
        .foreign(pending, "Left work pending", Unit::Ratio, REASON)
        .foreign_time(ready, "Time of the call, nothing pending", REASON)
        .foreign_time(behind, "Time of the call behind work", REASON)
}
