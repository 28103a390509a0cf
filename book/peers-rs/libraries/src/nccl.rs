//! NCCL, with one rank.

use cudarc::nccl::{result, sys};
use syncscope_peer::{Calls, Result};

use crate::handle::Handle;
use crate::{Fixture, SIDE, address, call, checked, dropped, found, prepared};

pub(crate) const CALLS: Calls<Fixture> = &[
    ("ncclGetUniqueId", |f| {
        is_here()?;
        call(f, |_| checked(result::get_uniqueid()))
    }),
    ("ncclCommInitRank", |f| {
        is_here()?;
        prepared(f, |_| checked(result::get_uniqueid()), |_, id| ranked(id))
    }),
    ("ncclCommInitAll", |f| {
        is_here()?;
        call(f, |f| {
            let (mut raw, device) = (std::ptr::null_mut(), f.ordinal as i32);
            // Safety: there is room for one communicator of one device.
            checked(unsafe { result::comm_init_all(&mut raw, 1, &device) })?;
            Ok(Comm::new(raw, end))
        })
    }),
    ("ncclCommDestroy", |f| dropped(f, comm)),
    ("ncclAllReduce first", |f| prepared(f, comm, |f, own| reduce(f, &own).map(|()| own))),
    ("ncclAllReduce later", |f| {
        let own = comm(f)?;
        call(f, move |f| reduce(f, &own))
    }),
];

type Comm = Handle<sys::ncclComm_t>;

fn is_here() -> Result<()> {
    // Safety: it looks for the library, and calls nothing of it.
    found(unsafe { sys::is_culib_present() }, "NCCL")
}

fn end(comm: sys::ncclComm_t) {
    // Safety: it is ended once, by its owner, and all work is over.
    _ = unsafe { result::comm_destroy(comm) };
}

fn ranked(id: sys::ncclUniqueId) -> Result<Comm> {
    let mut raw = std::ptr::null_mut();
    // Safety: there is room for the communicator.
    checked(unsafe { result::comm_init_rank(&mut raw, 1, id, 0) })?;
    Ok(Comm::new(raw, end))
}

fn comm(_: &Fixture) -> Result<Comm> {
    is_here()?;
    ranked(checked(result::get_uniqueid())?)
}

fn reduce(f: &Fixture, comm: &Comm) -> Result<()> {
    let (from, to) = (address(&f.b)?.cast_const().cast(), address(&f.c)?.cast());
    let (kind, sum) = (sys::ncclDataType_t::ncclFloat32, sys::ncclRedOp_t::ncclSum);
    // Safety: both have so many numbers.
    checked(unsafe { result::all_reduce(from, to, SIDE * SIDE, kind, sum, comm.raw(), f.raw.cast()) }).map(drop)
}
