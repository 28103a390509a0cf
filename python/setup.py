"""Compiles the library with rustc, and names the wheel by what it runs on: any Python 3, and one platform."""
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
# In a checkout, and in a source distribution.
ROOTS = [HERE.parent, HERE / "native"]
NO_WAIT = "src/audit/no_wait"
SOURCES = [
    f"{NO_WAIT}/*",
    "src/audit/injected/library.rs",
    "src/audit/injected/system.rs",
    "src/audit/injected/unwind.rs",
    "src/syncscope/device/cuda/profiling/cupti/waits.rs",
]
LIBRARY = "libsyncscope_no_wait.so"


def root():
    return next(root for root in ROOTS if (root / NO_WAIT / "lib.rs").is_file())


def compile_library(library):
    if not sys.platform.startswith("linux"):
        sys.exit("syncscope: no-wait tests need Linux: CUPTI's callbacks are used there alone")
    rustc = os.environ.get("RUSTC", "rustc")
    command = [rustc, "--edition=2024", "--crate-name=syncscope_no_wait", "--crate-type=cdylib", "-Copt-level=2"]
    command += ["-Cpanic=abort", "-Cstrip=symbols", "--cap-lints=allow", "-o", str(library)]
    try:
        subprocess.run([*command, str(root() / NO_WAIT / "lib.rs")], check=True)
    except FileNotFoundError:
        sys.exit(f"syncscope: building it needs Rust 1.85 or later, and there is no `{rustc}`. https://rustup.rs has it")
    except subprocess.CalledProcessError:
        sys.exit("syncscope: rustc could not compile the library. It has to be of version 1.85 or later, with a linker")


class BuildPy(build_py):
    def run(self):
        super().run()
        package = Path(self.get_package_dir("syncscope") if self.editable_mode else self.build_lib + "/syncscope")
        compile_library(package / LIBRARY)
        shutil.copy(root() / NO_WAIT / "syncscope_no_wait.h", package)


class Wheel(bdist_wheel):
    def get_tag(self):
        """The library has no ABI of Python. It runs from the newest version of the C library on that it names."""
        machine = sysconfig.get_platform().rsplit("-", 1)[-1]
        library = Path(self.bdist_dir) / "syncscope" / LIBRARY
        # An editable installation asks for the name before it is built; another C library has no such versions.
        versions = re.findall(rb"GLIBC_(\d+)\.(\d+)", library.read_bytes() if library.is_file() else b"")
        if not versions:
            return "py3", "none", f"linux_{machine}"
        major, minor = max((int(major), int(minor)) for major, minor in versions)
        return "py3", "none", f"manylinux_{major}_{minor}_{machine}"


class Sdist(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for source in (path for pattern in SOURCES for path in root().glob(pattern)):
            copy = Path(base_dir) / "native" / source.relative_to(root())
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)


class Binary(Distribution):
    def has_ext_modules(self):
        return True


setup(distclass=Binary, cmdclass={"build_py": BuildPy, "bdist_wheel": Wheel, "sdist": Sdist})
