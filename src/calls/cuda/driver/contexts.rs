//! Calls about contexts and devices, and copies between two of them.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUcontext, CUctxCreateParams, CUdevice, CUdevice_attribute, CUresult};
use syncscope::device::raw::Context;

use super::owned::{Block, Owned};
use super::{Calls, SETTABLE, call, creates, ends, plain, provided};
use crate::catalogue::{Call, Memory};
use crate::{On, Result};

pub(super) fn calls() -> Vec<Call> {
    vec![
        plain("cuDeviceGetAttribute", On::Nothing, |c| {
            let (mut value, which) = (0, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
            // Safety: writes one integer.
            Ok(unsafe { sys::cuDeviceGetAttribute(&mut value, which, c.context.device()) })
        }),
        creates("cuDevicePrimaryCtxRetain", On::Nothing, sys::cuDevicePrimaryCtxRelease_v2, |c, place| {
            Ok(retain(c, place))
        }),
        ends("cuDevicePrimaryCtxRelease", |c| {
            Owned::new(&c.context, "cuDevicePrimaryCtxRetain", sys::cuDevicePrimaryCtxRelease_v2, |p| retain(c, p))
        }),
        call("cuDevicePrimaryCtxSetFlags", On::Nothing, |calls| {
            let mut flags = 0;
            calls.check("cuDevicePrimaryCtxGetState", state(calls, &mut flags))?;
            Ok(calls.plain("cuDevicePrimaryCtxSetFlags", move |c| {
                // Safety: the flags are what they were.
                Ok(unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(c.context.device(), flags & SETTABLE) })
            }))
        }),
        plain("cuDevicePrimaryCtxGetState", On::Nothing, |c| Ok(state(c, &mut 0))),
        provided(
            has_create,
            creates("cuCtxCreate", On::Nothing, sys::cuCtxDestroy_v2, |c, context| Ok(create(c, context))),
        ),
        provided(has_create, ends("cuCtxDestroy", created)),
        call("cuDeviceCanAccessPeer", On::Nothing, |calls| {
            let other = calls.other()?;
            Ok(calls.plain("cuDeviceCanAccessPeer", move |c| Ok(can_access(&mut 0, &c.context, &other))))
        }),
        call("cuCtxEnablePeerAccess", On::Nothing, |calls| {
            let other = calls.other()?;
            let off = move |c: &Calls| Ok(PeerDevice::new(&c.context, &other));
            Ok(calls.made("cuCtxEnablePeerAccess", off, |_, peer| Ok(peer.enable())).boxed())
        }),
        call("cuCtxDisablePeerAccess", On::Nothing, |calls| {
            let other = calls.other()?;
            let enabled = move |c: &Calls| {
                let mut peer = PeerDevice::new(&c.context, &other);
                peer.set(true).map(|()| peer)
            };
            Ok(calls.made("cuCtxDisablePeerAccess", enabled, |_, peer| Ok(peer.disable())).boxed())
        }),
    ]
}

/// Keeps the device, by which the context is released.
fn retain(calls: &Calls, device: &mut CUdevice) -> CUresult {
    let mut raw = ptr::null_mut();
    *device = calls.context.device();
    // Safety: writes one handle, which is the context that this process has.
    unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, *device) }
}

fn state(calls: &Calls, flags: &mut u32) -> CUresult {
    let mut active = 0;
    // Safety: writes two integers.
    unsafe { sys::cuDevicePrimaryCtxGetState(calls.context.device(), flags, &mut active) }
}

fn create(calls: &Calls, context: &mut CUcontext) -> CUresult {
    let (affinity, cig) = (ptr::null_mut(), ptr::null_mut());
    let mut parameters = CUctxCreateParams { execAffinityParams: affinity, numExecAffinityParams: 0, cigParams: cig };
    // Safety: writes one handle, which becomes current on this thread until the context of the rig is bound again.
    unsafe { sys::cuCtxCreate_v4(context, &mut parameters, 0, calls.context.device()) }
}

fn has_create(calls: &Calls) -> Result<()> {
    calls.require("cuCtxCreate_v4")
}

/// A context that is not current.
fn created(calls: &Calls) -> Result<Owned<CUcontext>> {
    let made = Owned::new(&calls.context, "cuCtxCreate", sys::cuCtxDestroy_v2, |raw| create(calls, raw))?;
    calls.bind().map(|()| made)
}

fn can_access(can: &mut i32, from: &Context, to: &Context) -> CUresult {
    // Safety: writes one integer.
    unsafe { sys::cuDeviceCanAccessPeer(can, from.device(), to.device()) }
}

/// Access of a context to the memory of another device.
pub(super) struct PeerDevice {
    context: Arc<Context>,
    other: Arc<Context>,
    enabled: bool,
}

impl PeerDevice {
    /// Access that is off.
    pub(super) fn new(context: &Arc<Context>, other: &Arc<Context>) -> Self {
        Self { context: context.clone(), other: other.clone(), enabled: false }
    }

    /// Fails where there can be none.
    pub(super) fn is_possible(&self, calls: &Calls) -> Result<()> {
        let mut can = 0;
        self.context.check("cuDeviceCanAccessPeer", can_access(&mut can, &self.context, &self.other))?;
        match can {
            0 => Err(calls.missing("access to another device", "these GPUs cannot access each other's memory")),
            _ => Ok(()),
        }
    }

    /// Turns it on; its context is current.
    fn enable(&mut self) -> CUresult {
        // Safety: both contexts are live, and the own one is current.
        let status = unsafe { sys::cuCtxEnablePeerAccess(self.other.raw(), 0) };
        self.enabled = status == CUresult::CUDA_SUCCESS;
        status
    }

    /// Turns it off; its context is current.
    fn disable(&mut self) -> CUresult {
        self.enabled = false;
        // Safety: as above; no work uses the other device's memory.
        unsafe { sys::cuCtxDisablePeerAccess(self.other.raw()) }
    }

    /// Turns it on or off with the own context current.
    pub(super) fn set(&mut self, on: bool) -> Result<()> {
        self.context.bind()?;
        let status = if on { self.enable() } else { self.disable() };
        self.context.check(if on { "cuCtxEnablePeerAccess" } else { "cuCtxDisablePeerAccess" }, status)
    }
}

impl Drop for PeerDevice {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        if self.enabled {
            let _ = self.set(false);
        }
    }
}

/// Copies of so many bytes from this device to another.
pub(super) fn copies(bytes: usize) -> impl Iterator<Item = Call> {
    [copy("cuMemcpyPeer", On::Nothing, bytes), copy("cuMemcpyPeerAsync", On::Stream, bytes)].into_iter()
}

fn copy(name: &'static str, on: On, bytes: usize) -> Call {
    let copy = call(name, on, move |calls| {
        let other = calls.other()?;
        let from = Block::new(&calls.context, Memory::Device, bytes)?;
        let to = Block::new(&other, Memory::Device, bytes)?;
        calls.bind()?;
        let (source, target, bytes) = (from.address()?, to.address()?, from.bytes().min(to.bytes()));
        Ok(calls.plain(name, move |c| {
            let _kept = (&from, &to);
            let (here, there, own) = (c.context.raw(), other.raw(), c.own.get()?);
            // Safety: both blocks hold as many bytes, each in its context, and are kept until the copy is over.
            Ok(unsafe {
                match on {
                    On::Stream => sys::cuMemcpyPeerAsync(target, there, source, here, bytes, own),
                    _ => sys::cuMemcpyPeer(target, there, source, here, bytes),
                }
            })
        }))
    });
    copy.of(Memory::Device, bytes)
}
