"""Gates: a stream waits at a closed gate until the host opens it. And whether a call waits for a stream: measured.

A gate is a word of pinned host memory that the driver's wait-value holds a stream by. Each closing waits for the next
number, so that a word is never set back while a stream may still read it. A closed gate is opened when its block ends,
however it ends, and by a thread when the limit is over. Should a call hold Python's lock while it waits, that thread
cannot run: then a timer of the C library ends the process, which has written what was measured before.
"""

import contextlib
import ctypes
import faulthandler
import sys
import threading

from . import affinity

# How long beyond the limit a gate may stay closed before the process is ended.
STUCK = 60.0


class Hold:
    """A gate that is closed. `late` is whether the limit was over before the gate was opened otherwise."""

    def __init__(self, word, number):
        self.word, self.number = word, number
        self.late = False
        self.ended = threading.Event()

    def open(self):
        self.word.value = self.number

    def watch(self, limit):
        if not self.ended.wait(limit):
            self.late = True
            self.open()


class Gate:
    def __init__(self, torch, driver):
        self.driver = driver
        # Kept alive as long as the gate, and by itself in its cache line.
        self.memory = torch.zeros(16, dtype=torch.int32, pin_memory=True)
        self.address = self.memory.data_ptr()
        self.word = ctypes.c_uint32.from_address(self.address)
        self.number = 0

    @contextlib.contextmanager
    def closed(self, streams, limit):
        """Holds `streams` within the block, or until the limit is over. The gate opens before the block is left."""
        self.number += 1
        hold = Hold(self.word, self.number)
        watcher = threading.Thread(target=hold.watch, args=(limit,), daemon=True)
        faulthandler.dump_traceback_later(limit + STUCK, exit=True, file=sys.__stderr__)
        try:
            for stream in streams:
                self.driver.wait_for(stream.cuda_stream, self.address, self.number)
            with affinity.elsewhere():
                watcher.start()
            yield hold
        finally:
            hold.ended.set()
            hold.open()
            if watcher.ident is not None:
                watcher.join()
            faulthandler.cancel_dump_traceback_later()

    def blocks(self, streams, call, patience):
        """Whether `call` came back only after the gate was opened, when `patience` was over.

        Make the call once before: loading its code may wait for the whole device.
        """
        with self.closed(streams, patience) as hold:
            result = call()
            late = hold.late
        del result
        return late
