"""The rows of each experiment, in PyTorch. A module declares its functions when it is imported."""

from . import (  # noqa: F401
    async_frontend,
    buffers,
    ceilings,
    idle_device,
    implementation,
    implicit,
    kernels,
    launch_path,
    layers,
    overlap,
    pytorch_calls,
    self_audit,
    streams,
    stopwatches,
    sync_points,
    synchronize,
    transfer,
)
