"""What allows a wait: a mark on a line, or an entry of a list."""
import ast
import bisect
import functools
import io
import linecache
import re
import tokenize
from collections.abc import Iterable
from fnmatch import fnmatchcase

MARK = re.compile(r"#\s*syncscope:\s*wait ok\b")
_NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def checked(entries):
    """Pairs of a pattern and a reason, both of which are there."""
    if not isinstance(entries, Iterable):
        raise ValueError(f"`allow` is a list of pairs of a pattern and a reason: {entries!r} is not")
    pairs = []
    for entry in entries:
        is_pair = isinstance(entry, (tuple, list)) and len(entry) == 2
        if not is_pair or not all(isinstance(text, str) and text.strip() for text in entry):
            raise ValueError(f"an entry of `allow` is a pattern and a reason, both of them texts: {entry!r} is not")
        pairs.append(tuple(entry))
    return pairs


def is_matched(wait, pattern):
    if any(fnmatchcase(name, pattern) for name in (wait.call, *wait.operators)):
        return True
    names = (f"{frame.file}:{frame.function}" for frame in wait.frames)
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}") for name in names)


def is_marked(wait):
    """Whether one of the statements within the block that led to the wait has the mark."""
    return any(_is_marked(frame.file, frame.line) for frame in wait.frames)


def _is_marked(file, line):
    """Whether the statement at this line has the mark on one of its lines."""
    if line is None or not any(map(MARK.search, linecache.getlines(file))):
        return False
    marked, statements = _read(file, tuple(linecache.getlines(file)))
    around = [(first, last) for first, last in statements if first <= line <= last]
    first, last = min(around, key=lambda span: span[1] - span[0], default=(line, line))
    return any(first <= mark <= last for mark in marked)


@functools.lru_cache(maxsize=64)
def _read(file, lines):
    """The lines with a mark, and the first and the last line of each statement: of one with a body, those of its head."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("".join(lines)).readline))
        nodes = list(ast.walk(ast.parse("".join(lines))))
    except (SyntaxError, tokenize.TokenError):
        # A cell of a notebook may hold more than Python.
        return [number for number, line in enumerate(lines, 1) if MARK.search(line)], []
    marks = [token.start[0] for token in tokens if token.type == tokenize.COMMENT and MARK.match(token.string)]
    ends = [token.end for token in tokens if token.type not in _NOT_CODE]
    statements = [node for node in nodes if isinstance(node, (ast.stmt, ast.ExceptHandler))]
    return marks, [_span(statement, ends, lines) for statement in statements]


def _span(statement, ends, lines):
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    first = _begin(statement)[0]
    if not body:
        return first, statement.end_lineno
    line, column = _begin(body[0])
    # Columns of the tree are those of bytes.
    before = (line, len(lines[line - 1].encode()[:column].decode()))
    return first, ends[bisect.bisect_right(ends, before) - 1][0]


def _begin(node):
    """Where a statement begins, with its decorators, or a case of `match`. Both of these begin a line."""
    around = (getattr(node, "decorator_list", None) or [getattr(node, "pattern", None)])[0]
    return (node.lineno, node.col_offset) if around is None else (around.lineno, 0)
