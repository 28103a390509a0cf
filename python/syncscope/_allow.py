"""What allows a wait: a mark on a line, or an entry of a list."""
import ast
import functools
import io
import linecache
import re
import tokenize
from fnmatch import fnmatchcase

MARK = re.compile(r"#\s*syncscope:\s*wait ok\b")


def checked(entries):
    """Pairs of a pattern and a reason, both of which are there."""
    pairs = []
    for entry in entries:
        is_pair = isinstance(entry, (tuple, list)) and len(entry) == 2
        if not is_pair or not all(isinstance(text, str) and text.strip() for text in entry):
            raise ValueError(f"an entry of `allow` is a pattern and a reason, both of them texts: {entry!r} is not")
        pairs.append(tuple(entry))
    return pairs


def is_allowed(wait, entries):
    return any(is_marked(frame.file, frame.line) for frame in wait.frames) or any(
        _matches(pattern, wait) for pattern, _ in entries
    )


def _matches(pattern, wait):
    if any(fnmatchcase(name, pattern) for name in (wait.call, *wait.operators)):
        return True
    names = (f"{frame.file}:{frame.function}" for frame in wait.frames)
    return any(fnmatchcase(name, pattern) or fnmatchcase(name, f"*/{pattern}") for name in names)


def is_marked(file, line):
    """Whether the statement at this line has the mark on one of its lines."""
    if line is None or not any(map(MARK.search, linecache.getlines(file))):
        return False
    marked, statements = _read(file, tuple(linecache.getlines(file)))
    around = [(first, last) for first, last in statements if first <= line <= last]
    first, last = min(around, key=lambda span: span[1] - span[0], default=(line, line))
    return any(first <= mark <= last for mark in marked)


@functools.lru_cache(maxsize=64)
def _read(file, lines):
    """The lines with a mark, and the first and the last line of each statement: of one with a body, those before the body."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO("".join(lines)).readline))
        nodes = list(ast.walk(ast.parse("".join(lines))))
    except (SyntaxError, tokenize.TokenError):
        # A cell of a notebook may hold more than Python.
        return [number for number, line in enumerate(lines, 1) if MARK.search(line)], []
    comments = [token for token in tokens if token.type == tokenize.COMMENT and MARK.match(token.string)]
    return [token.start[0] for token in comments], [_span(node) for node in nodes if isinstance(node, ast.stmt)]


def _span(statement):
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    if not body:
        return statement.lineno, statement.end_lineno
    first = body[0] if isinstance(body[0], ast.stmt) else body[0].pattern
    decorators = [decorator.lineno for decorator in getattr(statement, "decorator_list", [])]
    return min([statement.lineno, *decorators]), max(statement.lineno, first.lineno - 1)
