"""A digest of the code that measures, so that results say by which code they were measured.

The build of `report` computes the same (build.rs): FNV-1a, 64 bits, of the script and of this package, in the order of their
names, without comments on lines of their own. The kernels in CUDA C++ count as well.
"""

import os

PACKAGE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(os.path.dirname(PACKAGE), "pytorch.py")


def digest():
    value = 0xCBF29CE484222325
    for path in [SCRIPT, *_files(PACKAGE)]:
        with open(path, encoding="utf-8", newline="") as file:
            lines = file.read().removesuffix("\n").split("\n")
        comment = "//" if path.endswith(".cu") else "#"
        for line in lines:
            if not line.lstrip().startswith(comment):
                for byte in f"{line}\n".encode():
                    value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def _files(folder):
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            yield from _files(path)
        elif name.endswith((".py", ".cu")):
            yield path
