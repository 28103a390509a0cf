"""Compiles CUDA C++ with NVRTC, from the library that comes with PyTorch or with a CUDA toolkit."""

import ctypes
import glob
import os


class CompileError(RuntimeError):
    """NVRTC is not there, or does not compile."""


def candidates(torch_folder):
    """Where NVRTC may lie: beside PyTorch, on the loader's path, in a toolkit. Newest versions first."""
    packages = os.path.dirname(torch_folder)
    patterns = [
        os.path.join(packages, "nvidia", "cu*", "lib", "libnvrtc.so*"),
        os.path.join(packages, "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so*"),
        os.path.join(torch_folder, "lib", "libnvrtc*.so*"),
    ]
    beside = [path for pattern in patterns for path in sorted(glob.glob(pattern), reverse=True)]
    beside = [path for path in beside if "builtins" not in path and ".alt." not in path]
    toolkits = sorted(glob.glob("/usr/local/cuda*/lib64/libnvrtc.so*"), reverse=True)
    return [*beside, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", *toolkits]


def load(paths):
    for path in paths:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise CompileError("NVRTC is not installed: no libnvrtc.so beside PyTorch, on the loader's path or in a CUDA toolkit")


def compile_cubin(library, source, architecture):
    """The binary of `source` for an architecture such as `sm_90`."""
    program = ctypes.c_void_p()

    def call(name, *arguments):
        result = getattr(library, name)(*arguments)
        if result != 0:
            raise CompileError(f"{name} failed with error {result}: {_log(library, program)}")

    call("nvrtcCreateProgram", ctypes.byref(program), source.encode(), b"spin.cu", 0, None, None)
    try:
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
        call("nvrtcCompileProgram", program, 1, options)
        size = ctypes.c_size_t()
        call("nvrtcGetCUBINSize", program, ctypes.byref(size))
        image = ctypes.create_string_buffer(size.value)
        call("nvrtcGetCUBIN", program, image)
        return image
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _log(library, program):
    size = ctypes.c_size_t()
    if not program or library.nvrtcGetProgramLogSize(program, ctypes.byref(size)) != 0 or size.value <= 1:
        return "no log"
    log = ctypes.create_string_buffer(size.value)
    library.nvrtcGetProgramLog(program, log)
    return " ".join(log.value.decode(errors="replace").split())
