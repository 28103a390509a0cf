"""Which frames lie within a block, on the stand-in for the driver: only those can allow a wait, and only those are named."""
import asyncio
import contextlib

import pytest
from standin import synchronize

import syncscope


@contextlib.contextmanager
def guard(**more):
    with syncscope.no_wait(**more):
        yield


@contextlib.asynccontextmanager
async def awaited_guard():
    with syncscope.no_wait():
        yield


def helper():
    synchronize()


def of_with(call):
    with syncscope.no_wait():
        call()


def of_context_manager(call):
    with guard():
        call()


def of_exit_stack(call):
    with contextlib.ExitStack() as stack:
        stack.enter_context(guard())
        call()


def of_two_functions(call):
    begin, end = halves()
    begin()
    call()
    end()


def halves():
    block = syncscope.no_wait()
    return lambda: block.__enter__(), lambda: block.__exit__(None, None, None)


def of_generator(call):
    def steps():
        with guard():
            yield
            call()

    [None for _ in steps()]


def of_coroutine(call):
    async def main():
        async with awaited_guard():
            await asyncio.sleep(0)
            call()

    asyncio.run(main())


def of_recursion(call, depth=20):
    if depth:
        return of_recursion(call, depth - 1)
    with syncscope.no_wait():
        call()


def deeper(call, depth=150):
    return call() if depth == 0 else deeper(call, depth - 1)


WAYS = [of_with, of_context_manager, of_exit_stack, of_two_functions, of_generator, of_coroutine, of_recursion]


def wait_of(way, call):
    with pytest.raises(syncscope.WaitError) as caught:
        way(call)  # syncscope: wait ok: outside of the block
    (wait,) = caught.value.waits
    return wait


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("around", [lambda call: call(), deeper], ids=["as it is", "deep"])
def test_frames_reach_from_the_wait_to_the_block_however_it_is_opened(way, around):
    """However deep the block lies, too: a frame beyond it would allow the wait by its mark."""
    wait = wait_of(lambda call: around(lambda: way(call)), helper)  # syncscope: wait ok: outside of the block
    functions = [frame.function for frame in wait.frames]
    assert functions[:2] == ["synchronize", "helper"] and wait.place.function == "synchronize"
    own = [frame.function for frame in wait.frames if frame.file == __file__]
    assert own in (["helper", way.__name__], ["helper", "steps"], ["helper", "main"]), own


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("depth", [*range(80, 101), 150])
def test_of_a_deep_wait_the_innermost_frames_are_known_and_the_block_at_their_edge(way, depth):
    wait = wait_of(way, lambda: deeper(helper, depth))
    assert wait.place.function == "synchronize"
    assert len(wait.frames) == 100 or wait.frames[-1].function in (way.__name__, "steps", "main")


@pytest.mark.parametrize("way", WAYS)
def test_a_mark_and_an_entry_within_the_block_allow(way):
    way(lambda: helper())  # syncscope: wait ok: the lambda's own line


def test_an_entry_allows_a_function_within_the_block_of_a_context_manager():
    def step():
        helper()

    with guard(allow=[("test_bounds.py:step", "a reason")]):
        step()
    with pytest.raises(syncscope.WaitError):
        with guard(allow=[("test_bounds.py:step", "a reason")]):
            helper()


def test_a_recursion_into_the_function_of_the_block_is_within_it():
    def step(depth):
        if depth == 2:
            with syncscope.no_wait():
                step(1)
        elif depth:
            step(depth - 1)  # syncscope: wait ok
        else:
            synchronize()

    step(2)


SPANS = {
    "behind the head": ("if call():\n    # syncscope: wait ok\n    pass\n", False),
    "behind the head of a loop": ("for _ in [call()]:\n\n    # syncscope: wait ok\n    pass\n", False),
    "behind a docstring's head": ("def f(x=call()):\n    # syncscope: wait ok\n    'text'\n", False),
    "at the decorator of the body": ("if call() or 1:\n    @staticmethod  # syncscope: wait ok\n    def f(): pass\n", False),
    "above the statement": ("# syncscope: wait ok\ncall()\n", False),
    "above an except": ("try:\n    1 / 0\n# syncscope: wait ok\nexcept (call() or ZeroDivisionError):\n    pass\n", False),
    "behind an except": ("try:\n    1 / 0\nexcept (call() or ZeroDivisionError):\n    # syncscope: wait ok\n    pass\n", False),
    "at another part": ("try:\n    call()\nfinally:  # syncscope: wait ok\n    pass\n", False),
    "at the head": ("if call():  # syncscope: wait ok\n    pass\n", True),
    "at the end of a head of lines": ("if (\n    call()\n):  # syncscope: wait ok\n    pass\n", True),
    "within a head of lines": ("if (\n    call()\n    # syncscope: wait ok\n):\n    pass\n", True),
    "at a body beside its head": ("if call(): é = 1; é  # syncscope: wait ok\n", True),
    "at an except": ("try:\n    1 / 0\nexcept (call() or ZeroDivisionError):  # syncscope: wait ok\n    pass\n", True),
    "at an except of lines": (
        "try:\n    1 / 0\nexcept (\n    call() or ZeroDivisionError\n):  # syncscope: wait ok\n    pass\n",
        True,
    ),
    "at a decorator": ("@(call() or staticmethod)\n@staticmethod  # syncscope: wait ok\ndef f(): pass\n", True),
    "within a statement": ("print(\n    call(),\n    # syncscope: wait ok\n    sep='',\n)\n", True),
}


@pytest.mark.parametrize(("source", "allows"), SPANS.values(), ids=SPANS)
def test_a_mark_counts_on_the_lines_of_its_statement_or_of_a_head_alone(tmp_path, source, allows):
    file = tmp_path / "program.py"
    file.write_text(source)
    code = compile(source, str(file), "exec")
    try:
        with syncscope.no_wait():
            exec(code, {"call": synchronize})
    except syncscope.WaitError:
        assert not allows
    else:
        assert allows
