//! The stream on which burn computes, which cubecl keeps to itself.
//!
//! cubecl has no call that gives it. But what it shows of its server for debugging has the address of each stream. Which one is
//! burn's is then seen by a gate: a wait for burn's work must wait for what holds it.

use std::time::Duration;

use burn::backend::Cuda;
use burn::backend::cuda::CudaDevice;
use burn::cubecl::Runtime;
use burn::cubecl::cuda::CudaRuntime;
use burn::cubecl::device::Device as _;
use burn::cubecl::device_handle::DeviceHandle;
use burn::tensor::Tensor;
use burn::tensor::backend::Backend;
use syncscope_peer::Result;
use syncscope_peer::syncscope::device::{Device, Stream};
use syncscope_peer::syncscope::error::DeviceError;
use syncscope_peer::syncscope::measure::blocks;

/// cubecl's server: what launches on a device.
type Server = <CudaRuntime as Runtime>::Server;

/// What stands before the address of a stream.
const BEFORE_ADDRESS: &str = "sys: 0x";

/// After how long a wait behind a closed gate counts as one.
const PATIENCE: Duration = Duration::from_millis(20);

/// The stream of burn's calls on this thread, for the library. Each thread has one of its own there.
///
/// # Errors
/// It cannot be told.
pub(crate) fn of(gpu: &CudaDevice, device: &Device) -> Result<Stream> {
    // The first work makes the stream. burn says nothing where its thread finds no headers to compile a kernel with.
    if (Tensor::<Cuda, 1>::ones([1], gpu) + 1.0).try_into_scalar()? != 2.0 {
        return Err(
            "burn computes nothing: it needs NVRTC and the headers of CUDA, in CUDA_PATH or /usr/local/cuda".into()
        );
    }
    let address = only_address(&on_server(gpu, |server| format!("{server:?}"))?)?;
    // Safety: the address is that of a stream of cubecl, which never destroys one.
    let stream = unsafe { device.wrap_raw(std::ptr::with_exposed_provenance_mut(address)) }?;
    let waits = blocks(&stream, PATIENCE, || {
        <Cuda>::sync(gpu).map_err(|error| DeviceError::call_failed("burn", "sync", error.to_string()))
    })?;
    if waits { Ok(stream) } else { Err("burn does not compute on the stream that cubecl shows".into()) }
}

/// Has all calls so far launched: none is left in the queue of cubecl's thread.
pub(crate) fn launch(gpu: &CudaDevice) -> Result<()> {
    on_server(gpu, |_| ())
}

/// Has cubecl's thread do something behind all that was asked of it before.
fn on_server<R: Send>(gpu: &CudaDevice, task: impl FnOnce(&mut Server) -> R + Send) -> Result<R> {
    let handle = DeviceHandle::<Server>::new(gpu.to_id());
    handle.submit_blocking(task).map_err(|error| format!("cubecl's thread failed: {error:?}").into())
}

/// The address of the stream in what is shown of a server that has one.
fn only_address(shown: &str) -> Result<usize> {
    let mut addresses = shown.split(BEFORE_ADDRESS).skip(1).map(|rest| {
        let digits = rest.split(|letter: char| !letter.is_ascii_hexdigit()).next();
        usize::from_str_radix(digits.unwrap_or_default(), 16)
    });
    match (addresses.next(), addresses.next()) {
        (Some(Ok(address)), None) => Ok(address),
        _ => Err("cubecl shows not one stream: its version is another one than the lock file's".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::only_address;

    #[test]
    fn the_stream_is_told_where_there_is_one_alone() {
        let stream = "Some(StreamWrapper { stream: Stream { sys: 0x55d0c0ffee10, errors: [] }, cursor: 3 })";
        let shown = |streams: &str| only_address(&format!("CudaServer {{ streams: [None, {streams}, None] }}"));
        assert!(matches!(shown(stream), Ok(0x55d0_c0ff_ee10)));
        assert!(shown("None").is_err());
        assert!(shown(&format!("{stream}, {stream}")).is_err());
    }
}
