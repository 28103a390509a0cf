"""One spin kernel of known length under eight stopwatches."""

from ..catalogue import produces
from ..lab import EVENTS, LIMIT, Case, RecordedCase
from ..recording import NotRecorded
from ..spin import NAME

PREFIX = "self-audit.stopwatch."

# The work that is pending, behind a gate, before the kernel that events time.
PENDING = 2e-5
# Turns of a loop where the plan states none.
LOOP = 100
# Elements (fp32) of the tensor that is written to flush the L2 cache: 256 MiB, more than it holds.
FLUSHED = 1 << 26


@produces(
    *(f"{PREFIX}{name}" for name in (
        "host", "host-wait", "events", "events-idle", "events-wrong-stream", "loop", "loop-flushed")),
    parameters=["spin_seconds"],
)
def stopwatches(lab, p):
    seconds = p["spin_seconds"]

    def spin():
        lab.spin(seconds)

    def wait():
        spin()
        lab.synchronize()

    return {
        f"{PREFIX}host": lab.host(spin),
        f"{PREFIX}host-wait": lab.host(wait),
        f"{PREFIX}events": behind_pending_work(lab, spin),
        f"{PREFIX}events-idle": lab.events(spin),
        f"{PREFIX}events-wrong-stream": on_wrong_stream(lab, spin),
        f"{PREFIX}loop": loop(lab, spin, iterations(p, "loop")),
        f"{PREFIX}loop-flushed": flushed_loop(lab, spin, iterations(p, "loop-flushed")),
    }


def iterations(p, name):
    """The iterations of a loop, by which its time is divided."""
    return p.iterations(f"{PREFIX}{name}", LOOP)


def behind_pending_work(lab, spin):
    """Neither the events nor the kernel wait for the host."""
    start, end = lab.timing_events()
    stream, gate = lab.stream(), lab.gate()

    def measure():
        with lab.torch.cuda.stream(stream):
            with gate.closed([stream], LIMIT):
                lab.spin(PENDING)
                start.record()
                spin()
                end.record()
            end.synchronize()
        return start.elapsed_time(end) / 1e3

    return Case(EVENTS, measure)


def on_wrong_stream(lab, spin):
    """Events on a stream that the kernel is not on."""
    start, end = lab.timing_events()
    other = lab.stream()

    def measure():
        start.record(other)
        spin()
        end.record(other)
        end.synchronize()
        return start.elapsed_time(end) / 1e3

    return Case(EVENTS, measure)


def loop(lab, spin, count):
    def region():
        for _ in range(count):
            spin()
        lab.synchronize()

    return lab.host(region, count)


def flushed_loop(lab, spin, count):
    """The L2 cache is overwritten before each kernel; events around each kernel leave the time of that out."""
    scratch = lab.torch.zeros(FLUSHED, device=lab.device)
    pairs = [lab.timing_events() for _ in range(count)]

    def measure():
        for start, end in pairs:
            scratch.zero_()
            start.record()
            spin()
            end.record()
        lab.synchronize()
        return sum(start.elapsed_time(end) for start, end in pairs) / 1e3 / count

    return Case(EVENTS, measure)


@produces(f"{PREFIX}span", parameters=["spin_seconds"], together=["spin_seconds"], recorded=True)
def span(lab, p):
    """The kernel's span as the profiler records it."""

    def act():
        lab.spin(p["spin_seconds"])
        lab.synchronize()

    def judge(trial):
        spans = [span for span in trial.launched("kernel") if NAME in span.name]
        if len(spans) != 1:
            raise NotRecorded(f"the profiler recorded {len(spans)} spins in a trial of one")
        return spans[0].end - spans[0].start

    return {f"{PREFIX}span": RecordedCase(act, judge)}
