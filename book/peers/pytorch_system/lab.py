"""What a function that measures rows gets: PyTorch, the device, its streams, gates and spins, and kinds of cases."""

import time
from dataclasses import dataclass

from .driver import Driver
from .gate import Gate
from .spin import Spinner

HOST, EVENTS, OBSERVED = "host", "device-events", "observed"

# After how long a call behind a closed gate counts as one that blocks: well above what the calls cost by themselves.
PATIENCE = 0.02
# For how long a gate may stay closed where nothing is expected to block.
LIMIT = 5.0


@dataclass
class Case:
    """Returns a sample each time it is called."""

    clock: str
    measure: object


@dataclass
class RecordedCase:
    """Acts while a profiler records; what was recorded then says the sample."""

    act: object
    judge: object
    clock: str = OBSERVED


class Lab:
    def __init__(self, torch, device):
        self.torch, self.device = torch, device
        self._made = {}

    def once(self, name, make):
        """What `make` makes, made once; where it fails, it fails again for each that needs it."""
        if name not in self._made:
            try:
                self._made[name] = make(), None
            except Exception as error:
                self._made[name] = None, error
        value, error = self._made[name]
        if error is not None:
            raise error.with_traceback(None)
        return value

    def driver(self):
        return self.once("driver", Driver)

    def gate(self):
        return self.once("gate", lambda: Gate(self.torch, self.driver()))

    def stream(self, number=0):
        """A stream by its number. They are few and kept, since PyTorch hands out its 32 streams in a circle."""
        return self.once(("stream", number), lambda: self.torch.cuda.Stream(self.device))

    def spinner(self):
        return self.once("spin", lambda: Spinner(self.torch, self.device, self.driver()))

    def spin(self, seconds, stream=None):
        """Keeps a stream, or the current one, busy for `seconds`."""
        self.spinner().spin((stream or self.current()).cuda_stream, seconds)

    def current(self):
        return self.torch.cuda.current_stream(self.device)

    def synchronize(self):
        self.torch.cuda.synchronize(self.device)

    def host(self, region, per=1):
        """Times `region` on the host. What it returns is dropped outside of the timed part."""

        def measure():
            start = time.perf_counter()
            made = region()
            seconds = time.perf_counter() - start
            del made
            return seconds / per

        return Case(HOST, measure)

    def host_singly(self, region, count):
        """Times `region` on the host so many times, each by itself with nothing pending, and takes the mean."""

        def measure():
            seconds = 0.0
            for _ in range(count):
                start = time.perf_counter()
                made = region()
                seconds += time.perf_counter() - start
                self.synchronize()
                del made
            return seconds / count

        return Case(HOST, measure)

    def read(self, make, read, ready=False, stream=None):
        """Times `read` on the host. The work of `make` is pending, or complete if `ready`."""

        def measure():
            with self.torch.cuda.stream(stream):
                made = make()
                if ready:
                    self.synchronize()
                start = time.perf_counter()
                value = read(made)
                seconds = time.perf_counter() - start
                del made, value
            return seconds

        return Case(HOST, measure)

    def events(self, region, per=1):
        """Times `region` with two events on the current stream."""
        start, end = self.timing_events()

        def measure():
            start.record()
            made = region()
            end.record()
            end.synchronize()
            del made
            return start.elapsed_time(end) / 1e3 / per

        return Case(EVENTS, measure)

    def timing_events(self):
        return [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def observed(self, look):
        """Takes what `look` returns: a count, a yes (1) or no (0)."""
        return Case(OBSERVED, look)

    def blocks(self, call, held=None, stream=None, patience=None, prepare=lambda: None):
        """Whether `call`, made on `stream`, waits for the stream `held`; where that is not named, for its own. The gate opens
        when the patience is over, and five times what the call takes by itself. Before each call `prepare` is done, with
        nothing held."""
        stream = stream or self.stream()
        gate = self.gate()

        def warm():
            with self.torch.cuda.stream(stream):
                prepare()
                call()
                prepare()
                self.synchronize()
                start = time.perf_counter()
                made = call()
                seconds = time.perf_counter() - start
                del made
            self.synchronize()
            return seconds

        # Code is loaded and memory allocated before a gate closes.
        limit = max(PATIENCE if patience is None else patience, 5 * warm())

        def look():
            with self.torch.cuda.stream(stream):
                prepare()
                self.synchronize()
                return float(gate.blocks([held or stream], call, limit))

        return self.observed(look)
