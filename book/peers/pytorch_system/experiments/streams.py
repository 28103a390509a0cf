"""What each kind of synchronization waits for: two streams and one tensor, and the scope of each call."""

from ..catalogue import produces
from .common import dtype_of, operands
from .synchronize import SMALL

ORDERS = ("none", "event", "device")


@produces(
    *(f"synchronize.streams.{order}.{what}" for order in ORDERS for what in ("stale", "time")),
    parameters=["elements", "busy_seconds"],
)
def two_streams_and_one_tensor(lab, p):
    """One stream writes a tensor that another copies; a spin delays the write. Elements that are not written are stale."""
    torch, elements = lab.torch, p["elements"]
    writer, reader = lab.stream(0), lab.stream(1)
    shared, copy = (torch.zeros(elements, device=lab.device) for _ in range(2))
    written = torch.cuda.Event()
    lab.synchronize()

    def handover(order):
        with torch.cuda.stream(writer):
            shared.fill_(0.0)
            writer.synchronize()
            lab.spin(p["busy_seconds"], writer)
            shared.fill_(1.0)
            if order == "event":
                written.record(writer)
        if order == "event":
            reader.wait_event(written)
        elif order == "device":
            lab.synchronize()
        with torch.cuda.stream(reader):
            copy.copy_(shared)
        lab.synchronize()

    def stale(order):
        handover(order)
        return torch.count_nonzero(copy - 1.0).item()

    cases = {}
    for order in ORDERS:
        cases[f"synchronize.streams.{order}.stale"] = lab.observed(lambda order=order: stale(order))
        cases[f"synchronize.streams.{order}.time"] = lab.host(lambda order=order: handover(order))
    return cases


@produces(
    *(f"synchronize.scope.{what}" for what in ("event", "stream", "device")),
    parameters=["event_seconds", "stream_seconds", "device_seconds"],
)
def scope_times(lab, p):
    """One stream is busy, then has an event, then is busy again; another is busy for longer."""
    own, other = lab.stream(0), lab.stream(1)
    event = lab.torch.cuda.Event()

    def begin():
        lab.spin(p["event_seconds"], own)
        event.record(own)
        lab.spin(p["stream_seconds"] - p["event_seconds"], own)
        lab.spin(p["device_seconds"], other)

    def case(wait):
        return lab.read(begin, lambda _: wait())

    return {
        "synchronize.scope.event": case(event.synchronize),
        "synchronize.scope.stream": case(own.synchronize),
        "synchronize.scope.device": case(lab.synchronize),
    }


@produces(*(f"synchronize.scope.{what}.blocks" for what in ("device", "stream", "item", "event")))
def scope_blocks(lab, p):
    """A closed gate holds another stream than that of the call."""
    torch, own, other = lab.torch, lab.stream(0), lab.stream(1)
    with torch.cuda.stream(own):
        x = torch.zeros(SMALL, device=lab.device)
    event = torch.cuda.Event()

    def launched(wait):
        def call():
            x.add_(1)
            event.record(own)
            wait()

        return lab.blocks(call, held=other, stream=own)

    return {
        "synchronize.scope.device.blocks": launched(lab.synchronize),
        "synchronize.scope.stream.blocks": launched(own.synchronize),
        "synchronize.scope.item.blocks": launched(lambda: x[0].item()),
        "synchronize.scope.event.blocks": launched(event.synchronize),
    }


@produces(
    "sync-points.multi-stream.stream-synchronize", "sync-points.multi-stream.device-synchronize",
    "sync-points.multi-stream.other-still-pending", parameters=["dtype", "size", "busy_seconds"],
)
def one_stream_of_two(lab, p):
    """A small matmul on one stream while a spin keeps the other busy."""
    torch, own, other = lab.torch, lab.stream(0), lab.stream(1)
    x, w = operands(lab, p["size"], dtype_of(lab, p["dtype"]))
    lab.synchronize()

    def begin():
        lab.spin(p["busy_seconds"], other)
        with torch.cuda.stream(own):
            return torch.mm(x, w)

    def still_pending():
        y = begin()
        own.synchronize()
        pending = not other.query()
        del y
        return float(pending)

    return {
        "sync-points.multi-stream.stream-synchronize": lab.read(begin, lambda _: own.synchronize()),
        "sync-points.multi-stream.device-synchronize": lab.read(begin, lambda _: lab.synchronize()),
        "sync-points.multi-stream.other-still-pending": lab.observed(still_pending),
    }
