//! The driver: safe wrappers of what a GPU's own interface offers, and nothing else.
//!
//! This is the only room of the library with `unsafe`, besides the CUPTI recorder. What lies above (free lists,
//! plans, gates, the order of frees) uses the types below by plain names, so that an engine for another GPU writes this
//! room and the kernels anew and keeps the rest.
//!
//! # Invariants
//! What the types cannot enforce is promised by the rooms above, each in one place:
//! * A [`PoolSpan`] is used only while its [`Allocation`] is not freed, or by work enqueued before the free (`memory`).
//! * Host memory that a copy reads or writes stays allocated and untouched until the copy is over (`memory`): a
//!   [`HostBlock`] that is page-locked is given back by [`HostBlock::release`] alone, not by its drop.
//! * A kernel touches the memory that its arguments name, within the sizes that they give (`kernels/`).
//! * What is enqueued on one stream by two threads is put in order by the guard of the stream (`stream`).
//!
//! | file | holds |
//! |---|---|
//! | `libraries` | what is loaded at run time |
//! | `context` | a GPU's context; errors |
//! | `stream`, `event`, `graph` | queues of work, marks in them, captured work |
//! | `apart` | what the driver does not do at once |
//! | `exit` | the end of the process |
//! | `pool`, `host` | device memory in stream order; host memory |
//! | `module`, `compiler` | kernels: loaded, compiled |
//! | `blas` | matrix multiplications of the vendor's library |
//! | `nccl` | the vendor's library for several devices |

mod apart;
pub(crate) mod blas;
pub(crate) mod compiler;
pub(crate) mod context;
mod event;
pub(crate) mod exit;
mod graph;
mod host;
pub(crate) mod libraries;
mod module;
pub(crate) mod nccl;
mod pool;
mod stream;

// What streams and memory are lent to another library as.
pub(crate) use cudarc::driver::sys::CUstream;
pub(crate) use cudarc::driver::{CudaSlice, CudaStream};

pub(crate) use context::Context;
pub(crate) use event::Event;
pub(crate) use graph::Executable;
pub(crate) use host::{HostBlock, HostPiece, filled_vec, no_room};
pub(crate) use module::{Argument, Function, Limits, Module, arguments};
pub(crate) use pool::{Allocation, Pool, PoolSpan};
pub(crate) use stream::{Capture, Foreign, Stream};
