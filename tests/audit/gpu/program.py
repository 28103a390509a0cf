"""The program that is audited: each call three times, behind 10 ms of work that is pending. With `--debug-mode FILE` it says
instead of which calls PyTorch's own `set_sync_debug_mode` warns; with `--profile FILE` it writes a trace of PyTorch's profiler."""
import json
import sys
import warnings

import torch

from calls import CALLS, COLD, Values, line


def settle():
    torch.cuda.synchronize()  # not one of the calls


def main(debug):
    values, warned = Values(), {}
    for _, call in CALLS:
        call(values)
    settle()
    for name, call in CALLS:
        for _ in range(3):
            values.prepare()
            settle()
            torch.cuda._sleep(18_000_000)
            values.pending()
            if debug:
                torch.cuda.set_sync_debug_mode("warn")
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    call(values)
                torch.cuda.set_sync_debug_mode("default")
                warned[str(line(call))] = any("synchroniz" in str(warning.message) for warning in caught)
            else:
                call(values)
        settle()
    torch.cuda._sleep(18_000_000)
    COLD[1](values)
    settle()
    if debug:
        with open(debug, "w") as file:
            json.dump(warned, file)


if "--profile" in sys.argv:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True) as profiler:
        main(None)
    profiler.export_chrome_trace(sys.argv[2])
else:
    main(sys.argv[2] if len(sys.argv) > 2 else None)
