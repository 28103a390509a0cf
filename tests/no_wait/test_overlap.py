"""Blocks of tasks, generators and threads, on the stand-in for the driver: a wait is that of the block around it, or an error says
why that cannot be told."""
import asyncio
import concurrent.futures
import contextlib
import threading

import pytest
import standin
from standin import synchronize

import syncscope

ANY = [("*", "a reason")]


@pytest.fixture(autouse=True)
def nothing_stays_open():
    yield
    assert not standin.is_subscribed()
    with pytest.raises(syncscope.WaitError):
        with syncscope.no_wait():
            synchronize()


async def waiting(allow, *, block=True, turns=3):
    with syncscope.no_wait(allow=allow) if block else contextlib.nullcontext():
        for _ in range(turns):
            await asyncio.sleep(0)
            synchronize()


async def gathered(*coroutines):
    results = await asyncio.gather(*coroutines, return_exceptions=True)
    return [type(result) for result in results]


def test_tasks_whose_blocks_would_swap_their_waits_get_an_error():
    results = asyncio.run(gathered(waiting([]), waiting(ANY)))
    assert results == [syncscope.WaitError, syncscope.CannotWatchError]
    with pytest.raises(syncscope.CannotWatchError, match="another task .* open: waiting of .*test_overlap.py|, waiting of "):
        asyncio.run(raising(waiting([], turns=1), waiting(ANY)))


async def raising(*coroutines):
    results = await asyncio.gather(*coroutines, return_exceptions=True)
    raise next(result for result in results if isinstance(result, syncscope.CannotWatchError))


def test_tasks_whose_blocks_do_not_meet_have_their_own():
    async def step(allow):
        await asyncio.sleep(0)
        with syncscope.no_wait(allow=allow):
            synchronize()
        await asyncio.sleep(0)

    results = asyncio.run(gathered(step([]), step(ANY), step(ANY), step([])))
    assert [result is syncscope.WaitError for result in results] == [True, False, False, True]


def test_a_block_around_a_loop_has_all_of_its_tasks():
    with pytest.raises(syncscope.WaitError) as caught:
        with syncscope.no_wait():
            asyncio.run(gathered(waiting([], block=False), waiting([], block=False)))
    assert sum(wait.count for wait in caught.value.waits) == 6
    with syncscope.no_wait():
        assert asyncio.run(gathered(waiting(ANY))) == [type(None)]


def test_a_wait_of_another_task_says_that_the_block_was_suspended():
    async def main():
        with pytest.raises(syncscope.WaitError) as caught:
            with syncscope.no_wait():
                await asyncio.create_task(waiting([], block=False, turns=1))
                synchronize()
        return [wait.why for wait in caught.value.waits]

    assert asyncio.run(main()) == ["waits for a stream, while the block was suspended", "waits for a stream"]


def test_a_block_within_that_of_the_same_task_is_judged_by_itself():
    async def inner():
        async with asynchronous(ANY):
            await asyncio.sleep(0)
            synchronize()

    @contextlib.asynccontextmanager
    async def asynchronous(allow):
        with syncscope.no_wait(allow=allow):
            await asyncio.sleep(0)
            yield

    async def main():
        async with asynchronous([]):
            await inner()

    asyncio.run(main())


def steps(allow):
    with syncscope.no_wait(allow=allow):
        for _ in range(3):
            synchronize()
            yield


@pytest.mark.parametrize("order", ["the first ends first", "the second ends first"])
def test_generators_that_take_turns_within_their_blocks_get_an_error(order):
    one, other = steps(ANY), steps(ANY)
    for _ in range(3):
        next(one), next(other)
    ends = [one, other] if order == "the first ends first" else [other, one]
    with pytest.raises(syncscope.CannotWatchError, match="overlap"):
        next(ends[0], None)
    with contextlib.suppress(syncscope.CannotWatchError):
        next(ends[1], None)


def test_nested_context_managers_are_no_overlap():
    @contextlib.contextmanager
    def guard(allow):
        with syncscope.no_wait(allow=allow):
            yield

    with guard([]), guard(ANY), contextlib.ExitStack() as stack:
        stack.enter_context(guard([]))
        stack.enter_context(guard(ANY))
        synchronize()


def test_a_generator_that_is_closed_ends_its_block():
    generator = steps([])
    next(generator)
    with pytest.raises(syncscope.WaitError):
        generator.close()


def in_thread(call):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


def test_a_generator_that_another_thread_closes_gets_an_error_and_so_do_blocks_within():
    generator = steps([])
    next(generator)
    with pytest.raises(syncscope.CannotWatchError, match="overlap"):
        with syncscope.no_wait():
            with pytest.raises(syncscope.CannotWatchError, match="another thread"):
                in_thread(generator.close)


def test_a_block_around_one_that_another_thread_closes_gets_an_error():
    with pytest.raises(syncscope.CannotWatchError, match="overlap"):
        with syncscope.no_wait():
            generator = steps([])
            next(generator)
            with pytest.raises(syncscope.CannotWatchError, match="another thread"):
                in_thread(generator.close)
            synchronize()


def test_a_block_is_open_once():
    block = syncscope.no_wait(allow=ANY)
    with block:
        with pytest.raises(syncscope.CannotWatchError, match="open already"):
            with block:
                pass
        with pytest.raises(syncscope.CannotWatchError, match="open already"):
            in_thread(block.__enter__)
        synchronize()
    with block:
        synchronize()


def test_an_error_of_the_program_is_the_one_that_is_raised_of_blocks_that_overlap():
    one, other = syncscope.no_wait(), syncscope.no_wait()
    one.__enter__()
    other.__enter__()
    assert one.__exit__(KeyError, KeyError(), None) is False
    with pytest.raises(syncscope.CannotWatchError, match="overlap"):
        other.__exit__(None, None, None)


def test_threads_of_a_pool_have_their_own_blocks():
    def step(allow):
        try:
            with syncscope.no_wait(allow=allow):
                meet.wait()
                synchronize()
                meet.wait()
        except syncscope.WaitError as error:
            return len(error.waits)
        return 0

    meet = threading.Barrier(4)
    with syncscope.no_wait(), concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(step, [[], ANY, [], ANY])) == [1, 0, 1, 0]
