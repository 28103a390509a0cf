//! Memory: of the device, of the host, and the copies between them.

pub(crate) mod device;
pub(crate) mod free_list;
pub(crate) mod host;
pub(crate) mod pending;
pub(crate) mod pinned;
pub(crate) mod transfers;
