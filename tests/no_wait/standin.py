"""The stand-in for the driver, as the tests call it."""
import ctypes

DRIVER = ctypes.CDLL("libcuda.so.1")
# A thread that keeps the interpreter's lock in its call.
LOCKED = ctypes.PyDLL("libcuda.so.1")
OPERATORS = ctypes.CDLL("liboperators.so")

word = ctypes.c_uint64
DEVICE, MANAGED, PAGEABLE, PINNED = word(1 << 40), word(1 << 39), word(1 << 20), word(64)
STREAM = word(7)


def synchronize(driver=DRIVER):
    driver.cuStreamSynchronize(STREAM)


def copy_to(host, bytes=4):
    DRIVER.cuMemcpyDtoHAsync_v2(host, DEVICE, word(bytes), STREAM)


def copy_from(host, bytes=4):
    DRIVER.cuMemcpyHtoDAsync_v2(DEVICE, host, word(bytes), STREAM)


def is_subscribed():
    return bool(DRIVER.fakeSubscribed())
