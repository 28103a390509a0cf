//! Calls about contexts and devices, and copies between two of them.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUcontext, CUctxCreateParams, CUdevice, CUdevice_attribute};

use super::owned::{Block, Owned};
use super::{Calls, Context, SETTABLE};
use crate::Result;
use crate::catalogue::{DeviceCall, Memory};
use crate::made::plain;
use crate::{Made, Steps};

pub(super) fn steps(calls: &Arc<Calls>, call: DeviceCall) -> Result<Box<dyn Steps>> {
    let (c, context, device) = (Arc::clone(calls), calls.context.clone(), calls.context.device());
    Ok(match call {
        DeviceCall::GetAttribute => plain(move || {
            let (mut value, which) = (0, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
            // Safety: writes one integer.
            c.check("cuDeviceGetAttribute", unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) })
        }),
        DeviceCall::RetainPrimary => Made::new(
            move || Ok(Owned::empty(&context, sys::cuDevicePrimaryCtxRelease_v2)),
            move |place: &mut Owned<CUdevice>| retain(place, device),
        )
        .boxed(),
        DeviceCall::ReleasePrimary => Made::new(
            move || {
                let mut place = Owned::empty(&context, sys::cuDevicePrimaryCtxRelease_v2);
                retain(&mut place, device).map(|()| place)
            },
            |place| place.end("cuDevicePrimaryCtxRelease"),
        )
        .boxed(),
        DeviceCall::SetPrimaryFlags => {
            let flags = state(calls)? & SETTABLE;
            plain(move || {
                // Safety: the flags are what they were.
                let status = unsafe { sys::cuDevicePrimaryCtxSetFlags_v2(device, flags) };
                c.check("cuDevicePrimaryCtxSetFlags", status)
            })
        }
        DeviceCall::GetPrimaryState => plain(move || state(&c).map(drop)),
        DeviceCall::CreateContext => {
            c.require("cuCtxCreate_v4")?;
            Made::new(move || Ok(Owned::empty(&context, sys::cuCtxDestroy_v2)), move |place| create(place, device))
                .boxed()
        }
        DeviceCall::DestroyContext => {
            c.require("cuCtxCreate_v4")?;
            Made::new(
                move || {
                    let mut place = Owned::empty(&context, sys::cuCtxDestroy_v2);
                    create(&mut place, device)?;
                    c.bind().map(|()| place)
                },
                |place| place.end("cuCtxDestroy"),
            )
            .boxed()
        }
        DeviceCall::CanAccessPeer => {
            let other = calls.other()?.device();
            plain(move || {
                let mut can = 0;
                // Safety: writes one integer.
                c.check("cuDeviceCanAccessPeer", unsafe { sys::cuDeviceCanAccessPeer(&mut can, device, other) })
            })
        }
        DeviceCall::EnablePeer => {
            let other = calls.other()?;
            Made::new(move || Ok(PeerDevice::new(&context, &other)), PeerDevice::enable).boxed()
        }
        DeviceCall::DisablePeer => {
            let other = calls.other()?;
            let enabled = move || {
                let mut peer = PeerDevice::new(&context, &other);
                peer.enable().map(|()| peer)
            };
            Made::new(enabled, PeerDevice::disable).boxed()
        }
        DeviceCall::CopyPeer(bytes) => copy(calls, &calls.other()?, bytes, false)?,
        DeviceCall::CopyPeerAsync(bytes) => copy(calls, &calls.other()?, bytes, true)?,
    })
}

/// The place keeps the device, by which the context is released.
fn retain(place: &mut Owned<CUdevice>, device: CUdevice) -> Result<()> {
    let mut raw = ptr::null_mut();
    // Safety: writes one handle, which is the context that this process has.
    let status = unsafe { sys::cuDevicePrimaryCtxRetain(&mut raw, device) };
    place.keep("cuDevicePrimaryCtxRetain", device, status)
}

fn state(calls: &Calls) -> Result<u32> {
    let (mut flags, mut active) = (0, 0);
    // Safety: writes two integers.
    let status = unsafe { sys::cuDevicePrimaryCtxGetState(calls.context.device(), &mut flags, &mut active) };
    calls.check("cuDevicePrimaryCtxGetState", status).map(|()| flags)
}

fn create(place: &mut Owned<CUcontext>, device: CUdevice) -> Result<()> {
    let (mut raw, mut parameters) = (
        ptr::null_mut(),
        CUctxCreateParams { execAffinityParams: ptr::null_mut(), numExecAffinityParams: 0, cigParams: ptr::null_mut() },
    );
    // Safety: writes one handle, which becomes current on this thread until the context of the rig is bound again.
    let status = unsafe { sys::cuCtxCreate_v4(&mut raw, &mut parameters, 0, device) };
    place.keep("cuCtxCreate", raw, status)
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
        // Safety: writes one integer.
        let status = unsafe { sys::cuDeviceCanAccessPeer(&mut can, self.context.device(), self.other.device()) };
        self.context.check("cuDeviceCanAccessPeer", status)?;
        match can {
            0 => Err(calls.missing("access to another device", "these GPUs cannot access each other's memory")),
            _ => Ok(()),
        }
    }

    /// Turns it on; its context is current.
    pub(super) fn enable(&mut self) -> Result<()> {
        // Safety: both contexts are live, and the own one is current.
        let status = unsafe { sys::cuCtxEnablePeerAccess(self.other.raw(), 0) };
        self.context.check("cuCtxEnablePeerAccess", status)?;
        self.enabled = true;
        Ok(())
    }

    /// Turns it off; its context is current.
    pub(super) fn disable(&mut self) -> Result<()> {
        self.enabled = false;
        // Safety: as above; no work uses the other device's memory.
        let status = unsafe { sys::cuCtxDisablePeerAccess(self.other.raw()) };
        self.context.check("cuCtxDisablePeerAccess", status)
    }

    /// Does it with the own context current.
    pub(super) fn at_home(&mut self, change: fn(&mut Self) -> Result<()>) -> Result<()> {
        self.context.bind()?;
        change(self)
    }
}

impl Drop for PeerDevice {
    /// A drop cannot return an error.
    fn drop(&mut self) {
        if self.enabled {
            let _ = self.at_home(Self::disable);
        }
    }
}

/// A copy from this device to another.
fn copy(calls: &Arc<Calls>, other: &Arc<Context>, bytes: usize, asynchronous: bool) -> Result<Box<dyn Steps>> {
    let (from, to) = (Block::new(&calls.context, Memory::Device, bytes)?, Block::new(other, Memory::Device, bytes)?);
    calls.bind()?;
    let (c, other, own) = (Arc::clone(calls), other.clone(), calls.own.get()?);
    let (source, target, bytes) = (from.address()?, to.address()?, from.bytes().min(to.bytes()));
    Ok(plain(move || {
        let _kept = (&from, &to);
        let (here, there) = (c.context.raw(), other.raw());
        // Safety: both blocks hold as many bytes, each in its context, and are kept until the copy is over.
        unsafe {
            match asynchronous {
                false => c.check("cuMemcpyPeer", sys::cuMemcpyPeer(target, there, source, here, bytes)),
                true => c.check("cuMemcpyPeerAsync", sys::cuMemcpyPeerAsync(target, there, source, here, bytes, own)),
            }
        }
    }))
}
