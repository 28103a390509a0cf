"""What samples say of threads that wait: each case waits until the record of this process says it, or for a minute."""
import ctypes
import glob
import mmap
import os
import queue
import struct
import sys
import threading
import time

cuda, word = ctypes.CDLL("libcupti.so.13"), ctypes.c_uint64
FRAME, STACK, SAMPLE = 3, 4, 9
deadline = time.monotonic() + 60


def records():
    [path] = glob.glob(f"{os.environ['SYNCSCOPE_AUDIT_FOLDER']}/{os.getpid()}-*.audit")
    with open(path, "rb") as file:
        data = file.read()
    at = 4096
    end = at + struct.unpack_from("<Q", data, 24)[0]
    while at < end:
        kind, _, length = struct.unpack_from("<HHI", data, at)
        yield kind, data[at + 8 : at + 8 + length]
        at += (8 + length + 7) // 8 * 8


def has(function, doing):
    """Whether a sample found a thread in this function of this file, and doing this."""
    frames, stacks = {}, {}
    for kind, data in records():
        if kind == FRAME:
            file, name = data[16:].split(b"\0")
            own = file == os.fsencode(__file__)
            frames[struct.unpack_from("<I", data)[0]] = name.decode().split(".")[-1] if own else None
        elif kind == STACK:
            number, *stack = struct.unpack(f"<{len(data) // 4}I", data)
            stacks[number] = [frames[frame] for frame in stack]
        elif kind == SAMPLE:
            stack = stacks.get(struct.unpack_from("<I", data, 20)[0], [])
            found = next((name for name in stack if name), None)
            if (found, data[32]) == (function, doing):
                return True
    return False


def until(function, doing):
    while not has(function, doing) and time.monotonic() < deadline:
        pass
    print(function, doing if has(function, doing) else "was not found")


def beside(function, doing, then):
    """Runs `then` on another thread once the function was found."""

    def body():
        until(function, doing)
        then()

    thread = threading.Thread(target=body)
    thread.start()
    return thread


def sleeps():
    while not has("sleeps", 2) and time.monotonic() < deadline:
        time.sleep(0.2)
    until("sleeps", 2)


def reads():
    source, sink = os.pipe()
    thread = beside("reads", 3, lambda: os.write(sink, b"x"))
    os.read(source, 1)
    thread.join()


def gets():
    things = queue.Queue()
    thread = beside("gets", 4, lambda: things.put(1))
    things.get()
    thread.join()


def wants_to_run():
    """The other thread computes in Python meanwhile."""
    ended = []
    thread = beside("wants_to_run", 5, lambda: ended.append(1))
    while not ended:
        time.sleep(0)
    thread.join()


def computes():
    """Never lets go of the interpreter's lock at the line of the inner loop: no other thread can have it there."""
    [path] = glob.glob(f"{os.environ['SYNCSCOPE_AUDIT_FOLDER']}/{os.getpid()}-*.audit")
    with open(path, "rb") as file:
        header = mmap.mmap(file.fileno(), 4096, access=mmap.ACCESS_READ)
    sys.setswitchinterval(1000)
    while not has("computes", 1) and time.monotonic() < deadline:
        before, end = header[24:32], time.monotonic() + 1
        while header[24:32] == before and time.monotonic() < end:
            pass
    sys.setswitchinterval(0.005)
    until("computes", 1)


def other_feeds():
    things = queue.Queue()

    def feeds():
        cuda.cuCtxSynchronize()
        things.get()

    feeder = threading.Thread(target=feeds)
    feeder.start()
    beside("feeds", 4, lambda: things.put(1)).join()
    feeder.join()


cuda.cuInit(0)
cuda.fakeLaunch(b"forward", word(7), word(1000))
cuda.cuCtxSynchronize()
try:
    with open("/proc/thread-self/syscall") as call:
        call.read()
except OSError:
    print("unknown")
    sys.exit()
for case in (sleeps, reads, gets, wants_to_run, computes, other_feeds):
    case()
