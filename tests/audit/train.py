"""A training loop as it is commonly written, on the stand-in for the driver."""
import ctypes
import os
import sys

fast = os.environ.get("FAKE_HOLDS_LOCK")
cuda = (ctypes.PyDLL if fast else ctypes.CDLL)("libcupti.so.13")
word = ctypes.c_uint64
PAGEABLE, PINNED = word(1 << 20), word(64)


def item():
    cuda.cuMemcpyDtoHAsync_v2(PAGEABLE, word(0), word(4), word(7))
    cuda.cuStreamSynchronize(word(7))


def forward():
    cuda.fakeLaunch(b"forward", word(7), word(2_000_000))


def step(number):
    cuda.fakeRange(number, b"step")
    cuda.fakeHost(word(50_000))
    forward()
    item()  # the planted wait
    cuda.cuMemcpyHtoDAsync_v2(word(0), PINNED, word(1_000_000), word(8))
    cuda.cuMemcpyHtoDAsync_v2(word(0), PAGEABLE, word(4096), word(8))
    cuda.fakeRange(number, None)


def main():
    cuda.cuInit(0)
    cuda.cuLibraryLoadData()
    cuda.cuMemHostAlloc()
    for number in range(1, 4):
        step(number)
    cuda.cuStreamSynchronize(word(9))  # nothing is pending here
    forward()
    cuda.cuMemFree_v2()
    cuda.cuCtxSynchronize()


main()
print(sys.stdin.read(), end="")
sys.exit(int(os.environ.get("FAKE_EXIT", "0")))
