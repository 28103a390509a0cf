"""The CUDA driver's calls that PyTorch has no name for, through ctypes. They act in the context that PyTorch made current."""

import ctypes


class DriverError(RuntimeError):
    """The driver is not there, or one of its calls failed."""


class Driver:
    def __init__(self, library="libcuda.so.1"):
        try:
            self.library = ctypes.CDLL(library)
        except OSError as error:
            raise DriverError(f"the CUDA driver cannot be loaded: {error}") from error

    def call(self, name, *arguments):
        try:
            function = getattr(self.library, name)
        except AttributeError as error:
            raise DriverError(f"the CUDA driver has no {name}: it is too old") from error
        result = function(*arguments)
        if result != 0:
            raise DriverError(f"{name} failed: {self._explain(result)}")

    def _explain(self, result):
        text = ctypes.c_char_p()
        self.library.cuGetErrorString(ctypes.c_int(result), ctypes.byref(text))
        return f"{text.value.decode()} (error {result})" if text.value else f"error {result}"

    def wait_for(self, stream, address, value):
        """Holds a stream until the 32 bits at `address` are `value` or more."""
        self.call(
            "cuStreamWaitValue32_v2", ctypes.c_void_p(stream), ctypes.c_uint64(address), ctypes.c_uint32(value),
            ctypes.c_uint(0),
        )

    def load(self, image, name):
        """The function `name` of a compiled module."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), image)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        return function

    def launch(self, function, stream, parameters):
        """Launches one thread with `parameters`, which are values of ctypes."""
        pointers = (ctypes.c_void_p * len(parameters))(*(ctypes.addressof(value) for value in parameters))
        one, none = ctypes.c_uint(1), ctypes.c_uint(0)
        self.call(
            "cuLaunchKernel", function, one, one, one, one, one, one, none, ctypes.c_void_p(stream), pointers,
            ctypes.c_void_p(0),
        )
