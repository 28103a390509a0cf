//! The callbacks for the calls that can wait.

use std::ffi::{CStr, c_char, c_void};

use crate::Refusal;
use crate::library::{Callback, DRIVER_CALLS, Status, TAKEN, library};
use crate::{system, waits};

type Subscribe = unsafe extern "C" fn(*mut *mut c_void, Callback, *mut c_void) -> Status;
type Unsubscribe = unsafe extern "C" fn(*mut c_void) -> Status;
type Enable = unsafe extern "C" fn(u32, *mut c_void, u32, u32) -> Status;
type Name = unsafe extern "C" fn(u32, u32, *mut *const c_char) -> Status;

/// The process has CUPTI's callbacks, until it is dropped.
pub(crate) struct Subscription {
    subscriber: *mut c_void,
    unsubscribe: Unsubscribe,
}

// Safety: CUPTI's handles are not bound to a thread.
unsafe impl Send for Subscription {}

impl Subscription {
    /// Has `callback` called at the enter and the exit of each function that can wait.
    pub(crate) fn begin(callback: Callback) -> Result<Self, Refusal> {
        const FUNCTIONS: u32 = 1024;
        let failed = |text: &str| Refusal::Failed(text.to_owned());
        let library = library().ok_or_else(|| {
            failed("no libcupti.so was found. It comes with the CUDA toolkit, and with PyTorch as nvidia-cuda-cupti")
        })?;
        let old = || failed("this libcupti.so lacks functions that are needed: those of CUDA 12 and 13 have them");
        let found = |name: &CStr| system::symbol(library, name).ok_or_else(old);
        // Safety: the functions have these signatures in CUPTI's headers.
        let (subscribe, unsubscribe, enable, name) = unsafe {
            (
                std::mem::transmute::<*mut c_void, Subscribe>(found(c"cuptiSubscribe")?),
                std::mem::transmute::<*mut c_void, Unsubscribe>(found(c"cuptiUnsubscribe")?),
                std::mem::transmute::<*mut c_void, Enable>(found(c"cuptiEnableCallback")?),
                std::mem::transmute::<*mut c_void, Name>(found(c"cuptiGetCallbackName")?),
            )
        };
        let mut subscriber = std::ptr::null_mut();
        // Safety: the callback lives as long as the process.
        match unsafe { subscribe(&mut subscriber, callback, std::ptr::null_mut()) } {
            0 => {}
            status if TAKEN.contains(&status) => {
                return Err(failed(
                    "another tool in this process has CUPTI's callbacks: a profiler, such as torch.profiler or Nsight, or \
                     an audit of syncscope. Run the test without it",
                ));
            }
            status => return Err(Refusal::Failed(format!("cuptiSubscribe answered {status}"))),
        }
        let subscription = Self { subscriber, unsubscribe };
        let can_wait = |number: &u32| {
            let mut text = std::ptr::null();
            // Safety: writes one pointer, to a name of CUPTI's where there is such a function.
            let known = unsafe { name(DRIVER_CALLS, *number, &mut text) } == 0 && !text.is_null();
            // Safety: as above.
            known && unsafe { CStr::from_ptr(text) }.to_str().is_ok_and(|name| waits::rule(name).is_some())
        };
        for number in (1..FUNCTIONS).filter(can_wait) {
            // Safety: a subscriber that is there.
            let status = unsafe { enable(1, subscriber, DRIVER_CALLS, number) };
            if status != 0 {
                return Err(Refusal::Failed(format!("cuptiEnableCallback answered {status}")));
            }
        }
        Ok(subscription)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        // Safety: a subscriber that is there, and is not used again.
        unsafe { (self.unsubscribe)(self.subscriber) };
    }
}
