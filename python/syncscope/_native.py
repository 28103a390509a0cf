"""The library, and the signal by which it has Python's frames written."""
import ctypes
import faulthandler
import functools
import os
import signal
import threading

NO_CUDA = 1


class CannotWatchError(RuntimeError):
    """The calls of the driver cannot be seen, or it cannot be told which of them are the block's."""


class NoCudaError(CannotWatchError):
    """There is no GPU to wait for."""


def library():
    """The path of the library; `syncscope_no_wait.h` lies beside it."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libsyncscope_no_wait.so")


@functools.lru_cache(maxsize=None)
def _loaded():
    loaded = ctypes.CDLL(library())
    loaded.syncscope_no_wait_begin.argtypes = [ctypes.POINTER(ctypes.c_char_p)]
    loaded.syncscope_no_wait_end.restype = ctypes.c_size_t
    loaded.syncscope_no_wait_text.argtypes = [ctypes.c_size_t]
    loaded.syncscope_no_wait_text.restype = ctypes.c_char_p
    return loaded


def _free_signal():
    """A signal that nobody in the process handles or ignores."""
    with open("/proc/self/status") as status:
        fields = dict(line.split(":", 1) for line in status)
    taken = int(fields["SigCgt"], 16) | int(fields["SigIgn"], 16)
    numbers = range(signal.SIGRTMAX - 1, signal.SIGRTMIN, -1)
    return next((number for number in numbers if not taken >> (number - 1) & 1), None)


_LOCK = threading.Lock()


@functools.lru_cache(maxsize=None)
def _frames_file():
    """The file of memory that frames are written to: it has to stay open."""
    number = _free_signal()
    if number is None:
        raise CannotWatchError("all real-time signals are taken: one is needed for the lines of Python")
    file = os.fdopen(os.memfd_create("syncscope"), "wb", buffering=0)
    faulthandler.register(number, file=file, all_threads=False, chain=False)
    _loaded().syncscope_no_wait_python(number, file.fileno())
    return file


def begin():
    why = ctypes.c_char_p()
    status = _loaded().syncscope_no_wait_begin(ctypes.byref(why))
    if status != 0:
        raise (NoCudaError if status == NO_CUDA else CannotWatchError)(why.value.decode(errors="replace"))
    try:
        with _LOCK:
            _frames_file()
    except BaseException:
        _loaded().syncscope_no_wait_end()
        raise


def end():
    """The texts of the calls that could wait."""
    count = _loaded().syncscope_no_wait_end()
    return [_loaded().syncscope_no_wait_text(number).decode(errors="replace") for number in range(count)]
