"""Functions that may not wait, on the stand-in for the driver."""
import asyncio
import functools
import inspect
import threading

import pytest
from standin import PAGEABLE, copy_to, is_subscribed, synchronize

import syncscope


@syncscope.no_wait()
def waiting():
    """Waits."""
    synchronize()


def test_a_function_fails_at_its_line_and_is_itself_but_for_that():
    with pytest.raises(syncscope.WaitError) as caught:
        waiting()
    (wait,) = caught.value.waits
    assert [frame.function for frame in wait.frames if frame.file == __file__] == ["waiting"]
    assert (waiting.__name__, waiting.__doc__) == ("waiting", "Waits.")
    assert syncscope.no_wait()(lambda one, *, other: (one, other))(1, other=2) == (1, 2)
    assert not is_subscribed()


def test_an_entry_allows_and_a_method_is_one():
    class Model:
        @syncscope.no_wait(allow=[("standin.py:synchronize", "a reason")])
        def step(self, call):
            call()
            return self

    model = Model()
    assert model.step(synchronize) is model
    with pytest.raises(syncscope.WaitError):
        model.step(lambda: copy_to(PAGEABLE))


def test_a_function_that_calls_itself_has_a_block_in_each_call():
    @syncscope.no_wait()
    def step(depth):
        if depth == 0:
            synchronize()
            return
        with pytest.raises(syncscope.WaitError) if depth == 1 else syncscope.no_wait():
            step(depth - 1)

    step(3)


def test_threads_call_it_at_the_same_time():
    meet, found = threading.Barrier(4), []

    @syncscope.no_wait()
    def step(waits):
        meet.wait()
        if waits:
            synchronize()
        meet.wait()

    def call(waits):
        try:
            step(waits)
        except syncscope.WaitError as error:
            found.append((waits, len(error.waits)))

    threads = [threading.Thread(target=call, args=[number % 2]) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == [(1, 1), (1, 1)] and not is_subscribed()


async def asynchronous(call):
    await asyncio.sleep(0)
    call()
    return 7


class Asynchronous:
    async def __call__(self, call):
        return await asynchronous(call)


@pytest.mark.parametrize("function", [asynchronous, functools.partial(asynchronous), Asynchronous()])
def test_a_coroutine_function_is_watched_while_it_runs(function):
    watched = syncscope.no_wait()(function)
    assert inspect.iscoroutinefunction(watched)
    assert asyncio.run(watched(int)) == 7
    with pytest.raises(syncscope.WaitError):
        asyncio.run(watched(synchronize))


def generator():
    yield


async def asynchronous_generator():
    yield


@pytest.mark.parametrize("function", [generator, asynchronous_generator, functools.partial(generator)])
def test_a_generator_is_refused(function):
    with pytest.raises(TypeError, match="suspended with its block open"):
        syncscope.no_wait()(function)


@pytest.mark.parametrize("other", [None, 7, Asynchronous])
def test_what_is_no_function_is_refused(other):
    with pytest.raises(TypeError, match="decorates a function"):
        syncscope.no_wait()(other)
