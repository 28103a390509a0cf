"""Waits: read from the library's texts, and put into words."""
import linecache
import re
import sys
import sysconfig
from typing import NamedTuple, Optional, Tuple

HEAD = re.compile(r"(\d+) × (\w+)(?:, (\d+) B)?: (.*)")
FRAME = re.compile(r'  File (?:"(.*)"|\?\?\?), line (\d+|\?\?\?) in (.*)')
ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
OPERATOR = re.compile(r"_ZN2at4_ops(\d+)(\w+)")
INSTALLED = ("/site-packages/", "/dist-packages/", sysconfig.get_paths()["stdlib"] + "/")


class Frame(NamedTuple):
    file: str
    line: Optional[int]
    function: str

    def is_own(self):
        """Whether it is the user's, and not that of a package or of Python."""
        return not self.file.startswith("<frozen ") and not any(part in self.file for part in INSTALLED)


class Wait(NamedTuple):
    """A call that can wait."""

    count: int
    """How often it was made, with this stack."""
    call: str
    """The driver's function."""
    bytes: Optional[int]
    """How many it copies."""
    why: str
    operators: Tuple[str, ...]
    """PyTorch's operators around it, the innermost last."""
    frames: Tuple[Frame, ...]
    """Those of Python within the block, the innermost first."""

    @property
    def place(self):
        """The innermost frame of the user's own."""
        unknown = Frame("(no line is known)", None, "")
        return next((frame for frame in self.frames if frame.is_own()), self.frames[0] if self.frames else unknown)

    def __str__(self):
        copied = "" if self.bytes is None else f", {self.bytes} B"
        operators = f" in {' → '.join(self.operators)}" if self.operators else ""
        times = "" if self.count == 1 else f"{self.count} × "
        return f"{times}{self.call}{copied}{operators}: {self.why}"


class WaitError(AssertionError):
    """A block has calls that can wait. `waits` are those that nothing allows, `unmatched` the patterns that matched none."""

    def __init__(self, waits, unmatched=()):
        self.waits = tuple(waits)
        self.unmatched = tuple(unmatched)
        super().__init__(self._text())

    def __reduce__(self):
        return type(self), (self.waits, self.unmatched)

    def _text(self):
        count = sum(wait.count for wait in self.waits)
        calls = "1 call" if count == 1 else f"{count} calls"
        lines = [f"{calls} in the block can wait for the GPU:"]
        for place, waits in _by_place(self.waits).items():
            source = linecache.getline(place.file, place.line or 0).strip()
            where = place.file if place.line is None else f"{place.file}:{place.line}, in {place.function}"
            lines.append(f"  {where}{': ' if source else ''}{source}")
            lines += (f"    {wait}" for wait in waits)
        lines.append("Remove a wait, or allow it by `# syncscope: wait ok` on its line or by an entry of `allow`.")
        if self.unmatched:
            lines.append(f"No wait matched of the entries: {', '.join(self.unmatched)}.")
        return "\n".join(lines)


def _by_place(waits):
    """The waits of each place; those that differ by frames beyond it are one."""
    places = {}
    for wait in waits:
        alike = places.setdefault(wait.place, {})
        key = wait._replace(count=0, frames=(wait.place,))
        alike[key] = alike.get(key, 0) + wait.count
    return {place: [key._replace(count=count) for key, count in alike.items()] for place, alike in places.items()}


def parse(text):
    """A wait from the library's text, with all of its frames."""
    head, *lines = text.splitlines()
    count, call, copied, why = HEAD.match(head).groups()
    frames = tuple(map(_frame, filter(None, map(FRAME.match, lines))))
    found = (OPERATOR.search(line) for line in lines)
    operators = [_operator(match[2][: int(match[1])]) for match in found if match]
    # Each operator calls itself anew for its next implementation.
    distinct = [name for name, inner in zip(operators, [None, *operators]) if name != inner]
    return Wait(int(count), call, int(copied) if copied else None, why, tuple(reversed(distinct)), frames)


def _frame(match):
    file, line, function = match.groups()
    plain = [ESCAPE.sub(lambda code: chr(int(code[1] or code[2] or code[3], 16)), text or "???") for text in (file, function)]
    return Frame(plain[0], None if line == "???" else int(line), plain[1])


def _operator(name):
    """PyTorch's name of an operator. The one in its library ends in that of the overload: `index_Tensor`."""
    aten = sys.modules["torch"].ops.aten if "torch" in sys.modules else None
    base = name
    while aten is not None and not hasattr(aten, base) and "_" in base.strip("_"):
        base = base.rpartition("_")[0]
    return f"aten::{base if hasattr(aten, base) else name}"
