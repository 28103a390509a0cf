"""Blocks, on the stand-in for the driver."""
import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import types

import pytest
import standin
from standin import DEVICE, DRIVER, LOCKED, MANAGED, OPERATORS, PAGEABLE, PINNED, copy_from, copy_to, synchronize, word

import syncscope


def waits_of(call, **more):
    """The waits of a block that makes a call, none where it passes."""
    try:
        with syncscope.no_wait(**more):
            call()
    except syncscope.WaitError as error:
        return error.waits
    return ()


def line_of(text):
    with open(__file__) as source:
        return next(number for number, line in enumerate(source, 1) if text in line)


WAITING = {
    "a synchronization with nothing pending": synchronize,
    "one that keeps the interpreter's lock": lambda: synchronize(LOCKED),
    "one with the device": lambda: DRIVER.cuCtxSynchronize(),
    "one with an event": lambda: DRIVER.cuEventSynchronize(word(1)),
    "a copy into pageable memory": lambda: copy_to(PAGEABLE),
    "one into managed memory": lambda: copy_to(MANAGED),
    "a large one from pageable memory": lambda: copy_from(PAGEABLE, 40_000_000),
    "a synchronous one from pinned memory": lambda: DRIVER.cuMemcpyHtoD_v2(DEVICE, PINNED, word(4)),
    "to free memory": lambda: DRIVER.cuMemFree_v2(DEVICE),
    "to fill pinned memory": lambda: DRIVER.cuMemsetD8_v2(PINNED),
}
RETURNING = {
    "a launch": lambda: DRIVER.fakeLaunch(b"kernel", word(7), word(1000)),
    "a copy into pinned memory": lambda: copy_to(PINNED, 40_000_000),
    "one from pinned memory": lambda: copy_from(PINNED, 40_000_000),
    "a small one from pageable memory": lambda: copy_from(PAGEABLE, 2 << 20),
    "to free nothing": lambda: DRIVER.cuMemFree_v2(word(0)),
    "to fill memory of the device": lambda: DRIVER.cuMemsetD8_v2(DEVICE),
    "to allocate": lambda: DRIVER.cuMemAlloc_v2(),
    "to page-lock": lambda: DRIVER.cuMemHostAlloc(),
    "to load code": lambda: DRIVER.cuLibraryLoadData(),
    "a synchronization that fails": lambda: DRIVER.cuStreamSynchronize(word(99)),
}


@pytest.mark.parametrize("call", WAITING.values(), ids=WAITING)
def test_a_call_that_can_wait_fails_the_block_at_its_line(call):
    (wait,) = waits_of(call)
    assert wait.frames[-1].function == "waits_of"
    assert [frame.function for frame in wait.frames if frame.file == __file__][-1] == "waits_of"
    assert wait.place == wait.frames[0] and wait.place.file in (__file__, standin.__file__)


@pytest.mark.parametrize("call", RETURNING.values(), ids=RETURNING)
def test_a_call_that_returns_at_once_does_not(call):
    assert waits_of(call) == ()


def test_the_error_names_line_function_operator_call_and_bytes():
    with pytest.raises(AssertionError) as caught:
        with syncscope.no_wait():
            for _ in range(3):
                OPERATORS.item()  # three times
    line = line_of("# three times")
    here = "test_the_error_names_line_function_operator_call_and_bytes"
    assert str(caught.value).splitlines() == [
        "3 calls in the block can wait for the GPU:",
        f"  {__file__}:{line}, in {here}: OPERATORS.item()  # three times",
        "    3 × cuMemcpyDtoHAsync_v2, 4 B in aten::item → aten::_local_scalar_dense: copies into pageable memory",
        "Remove a wait, or allow it by `# syncscope: wait ok` on its line or by an entry of `allow`.",
    ]
    assert pickle.loads(pickle.dumps(caught.value)).waits == caught.value.waits


def test_the_same_wait_is_counted_and_of_very_many_different_ones_the_rest():
    def call(lines):
        names = {}
        exec("def wait(synchronize):\n" + "    synchronize()\n" * lines, names)
        names["wait"](DRIVER.cuCtxSynchronize)

    assert [wait.count for wait in waits_of(lambda: [call(2) for _ in range(2000)])] == [2000, 2000]
    *waits, others = waits_of(lambda: call(1003))
    assert ({wait.count for wait in waits}, len(waits)) == ({1}, 1000)
    assert (others.count, others.call) == (3, "others")
    with pytest.raises(syncscope.WaitError, match="^1003 calls in the block"):
        raise syncscope.WaitError([*waits, others])


def test_a_wait_that_is_allowed_is_allowed_however_often():
    assert waits_of(lambda: [marked() for _ in range(5000)]) == ()


def test_nothing_is_watched_while_no_block_is_open():
    assert not standin.is_subscribed()
    with syncscope.no_wait():
        with syncscope.no_wait():
            pass
        assert standin.is_subscribed()
    assert not standin.is_subscribed()


def marked():
    synchronize()  # syncscope: wait ok


def marked_over_lines():
    list(
        map(
            lambda _: synchronize(),
            [1],  # syncscope: wait ok: the reason
        )
    )


def marked_in_a_text():
    synchronize(), "# syncscope: wait ok"


def marked_at_the_next_line():
    synchronize()
    # syncscope: wait ok


def marked_at_its_head():
    if synchronize() is None:  # syncscope: wait ok
        pass


def marked_in_its_body():
    if synchronize() is None:
        gc.isenabled()  # syncscope: wait ok


@pytest.mark.parametrize("call", [marked, marked_over_lines, marked_at_its_head])
def test_a_mark_allows_the_waits_of_its_statement(call):
    assert waits_of(call) == ()


@pytest.mark.parametrize("call", [marked_in_a_text, marked_at_the_next_line, marked_in_its_body])
def test_a_mark_of_another_line_does_not(call):
    assert len(waits_of(call)) == 1


def test_a_mark_outside_of_the_block_allows_nothing():
    assert len(waits_of(synchronize)) == 1  # syncscope: wait ok


def test_a_mark_within_the_block_allows_what_its_line_calls():
    def outer():
        middle()  # syncscope: wait ok

    def middle():
        synchronize()

    assert waits_of(outer) == () and len(waits_of(middle)) == 1


@pytest.mark.parametrize(
    ("pattern", "allows"),
    [
        ("standin.py:copy_to", True),
        ("no_wait/standin.py:copy_to", True),
        ("*:copy_*", True),
        ("cuMemcpyDtoHAsync_v2", True),
        ("in.py:copy_to", False),
        ("standin.py:synchronize", False),
        ("aten::item", False),
    ],
)
def test_an_entry_allows_a_function_with_what_it_calls_or_a_call(pattern, allows):
    waits = waits_of(lambda: copy_to(PAGEABLE), allow=[(pattern, "a reason")])
    assert (waits == ()) == allows


def test_an_entry_allows_an_operator():
    assert waits_of(OPERATORS.item, allow=[("aten::item", "a reason")]) == ()
    assert waits_of(OPERATORS.item, allow=[("aten::*_dense", "a reason")]) == ()


@pytest.mark.parametrize("entry", ["train.py:step", ("train.py:step",), ("train.py:step", " "), ("", "why"), ("a", None)])
def test_an_entry_without_a_reason_is_an_error(entry):
    with pytest.raises(ValueError, match="a pattern and a reason"):
        syncscope.no_wait(allow=[entry])


def test_a_block_is_its_threads():
    """By events: the other thread waits while the block is open."""
    opened, waited = threading.Event(), threading.Event()

    def other():
        opened.wait()
        synchronize()
        waited.set()

    thread = threading.Thread(target=other)
    thread.start()

    def call():
        opened.set()
        waited.wait()

    assert waits_of(call) == ()
    thread.join()


def test_blocks_of_threads_at_the_same_time_have_their_own_waits():
    meet, found = threading.Barrier(4), {}

    def block(number):
        def call():
            for _ in range(50):
                meet.wait()
                for _ in range(number):
                    synchronize()

        found[number] = sum(wait.count for wait in waits_of(call))

    threads = [threading.Thread(target=block, args=[number]) for number in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert found == {number: 50 * number for number in range(4)} and not standin.is_subscribed()


def test_a_thread_that_holds_the_lock_of_another_does_not_stop_it():
    """A thread that has let go of the interpreter's lock waits for nobody, whoever holds that meanwhile."""
    stop = threading.Event()
    thread = threading.Thread(target=lambda: [None for _ in iter(stop.is_set, True)])
    thread.start()
    assert [wait.count for wait in waits_of(lambda: [synchronize() for _ in range(200)])] == [200]
    stop.set()
    thread.join()


def test_an_inner_block_is_judged_by_itself():
    def call():
        with syncscope.no_wait(allow=[("standin.py:synchronize", "allowed within")]):
            synchronize()
        copy_to(PAGEABLE)

    assert [wait.call for wait in waits_of(call)] == ["cuMemcpyDtoHAsync_v2"]


def test_an_error_of_the_block_is_the_one_that_is_raised():
    with pytest.raises(KeyError):
        with syncscope.no_wait():
            synchronize()
            raise KeyError
    assert not standin.is_subscribed()
    assert len(waits_of(synchronize)) == 1


def deep(depth):
    deep(depth - 1) if depth else synchronize()


def test_lines_of_a_deep_stack_are_the_innermost_ones():
    (wait,) = waits_of(lambda: deep(300))
    assert wait.place.function == "synchronize" and len(wait.frames) == 100


def test_frames_outside_of_the_block_are_left_out_within_generators_too():
    def generator():
        synchronize()
        yield

    (wait,) = waits_of(lambda: list(generator()))
    assert [frame.function for frame in wait.frames] == ["synchronize", "generator", "<lambda>", "waits_of"]


def test_a_name_that_is_not_ascii_is_read():
    source = "def größe_数(synchronize):\n    synchronize()\n"
    names = {}
    exec(compile(source, "/tmp/ä/𝟙.py", "exec"), names)
    (wait,) = waits_of(lambda: names["größe_数"](DRIVER.cuCtxSynchronize))
    assert wait.frames[0] == ("/tmp/ä/𝟙.py", 2, "größe_数")


def test_a_line_of_a_package_stands_at_the_users_line(tmp_path):
    package = tmp_path / "site-packages" / "package.py"
    package.parent.mkdir()
    package.write_text("def call(synchronize):\n    synchronize()\n")
    names = {}
    exec(compile(package.read_text(), str(package), "exec"), names)
    (wait,) = waits_of(lambda: names["call"](DRIVER.cuCtxSynchronize))  # the user's line
    assert (wait.frames[0].file, wait.place.line) == (str(package), line_of("# the user's line"))


def test_a_program_that_closes_all_files_keeps_those_that_it_opens():
    script = """
import os, syncscope, standin, tempfile
with syncscope.no_wait():
    pass
os.closerange(3, 100)
files = [tempfile.TemporaryFile() for _ in range(20)]
[(file.write(b"own"), file.flush()) for file in files]
try:
    with syncscope.no_wait():
        standin.synchronize()
except syncscope.WaitError as error:
    print("no line is known" in str(error), all(os.pread(file.fileno(), 9, 0) == b"own" for file in files))
"""
    assert run(script) == "True True\n"


def test_a_child_of_a_fork_leaves_the_block_and_opens_none():
    reader, writer = os.pipe()
    with syncscope.no_wait():
        child = os.fork()
        if child == 0:
            try:
                with syncscope.no_wait():
                    pass
            except syncscope.CannotWatchError as error:
                os.write(writer, str(error).encode())
    if child == 0:
        os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    assert b"forked" in os.read(reader, 1000) and not standin.is_subscribed()
    assert len(waits_of(synchronize)) == 1


def test_backward_is_run_by_the_thread_of_the_block(monkeypatch):
    class SetMultithreading:
        state = True

        def __init__(self, mode):
            self.before, type(self).state = type(self).state, mode

        def __enter__(self):
            pass

        def __exit__(self, *_):
            type(self).state = self.before

    aten = types.SimpleNamespace(item=1, _local_scalar_dense=1)
    torch = types.SimpleNamespace(
        autograd=types.SimpleNamespace(set_multithreading_enabled=SetMultithreading), ops=types.SimpleNamespace(aten=aten)
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    seen = []
    (wait,) = waits_of(lambda: (seen.append(SetMultithreading.state), OPERATORS.item()))
    assert (seen, SetMultithreading.state) == ([False], True)
    assert wait.operators == ("aten::item", "aten::_local_scalar_dense")
    monkeypatch.setenv("FAKE_TAKEN", "1")
    with pytest.raises(syncscope.CannotWatchError):
        syncscope.no_wait().__enter__()
    assert SetMultithreading.state


def run(script, **environment):
    """What a program prints, beside these tests."""
    path = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    output = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    return output.stdout


BEGIN = """
import syncscope
try:
    with syncscope.no_wait(): pass
except syncscope.CannotWatchError as error: print(type(error).__name__, error)
"""


def test_another_tool_no_gpu_no_driver_and_no_cupti_are_said(tmp_path):
    assert "another tool in this process has CUPTI's callbacks" in run(BEGIN, FAKE_TAKEN="1")
    assert run(BEGIN, FAKE_REFUSED="1") == "CannotWatchError cuptiSubscribe answered 1\n"
    assert run(BEGIN, FAKE_NO_DEVICE="1") == "NoCudaError the CUDA driver sees no GPU here\n"
    (tmp_path / "libcuda.so.1").symlink_to(os.environ["STANDIN_WITHOUT_CUPTI"])
    said = run(BEGIN, LD_LIBRARY_PATH=str(tmp_path))
    assert said == "" or said.startswith("CannotWatchError no libcupti.so was found"), said
    said = run(BEGIN, LD_LIBRARY_PATH="")
    assert said == "" or said.startswith("NoCudaError there is no CUDA driver here"), said


def test_a_process_that_is_spawned_has_blocks_of_its_own():
    with syncscope.no_wait():
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.apply(in_child) == 1


def in_child():
    return len(waits_of(synchronize))
