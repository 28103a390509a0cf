"""What the plugin makes of tests, on the stand-in for the driver."""
import os

import pytest

pytest_plugins = ["pytester"]

TESTS = """
import pytest
from standin import synchronize

def helper():
    synchronize()

@pytest.fixture
def waiting():
    synchronize()

@pytest.mark.no_wait
def test_passes(waiting): pass

@pytest.mark.no_wait
def test_fails(): helper()

@pytest.mark.no_wait(allow=[("*:helper", "a reason")])
def test_is_allowed(): helper()

def test_is_not_marked(): helper()

@pytest.mark.no_wait
def test_has_its_own_error():
    helper()
    raise KeyError("own")

@pytest.mark.no_wait
class TestAll:
    def test_fails(self): helper()

    @pytest.mark.no_wait(allow=[("*:helper", "a reason")])
    def test_is_allowed(self): helper()
"""


@pytest.fixture
def results(pytester, monkeypatch):
    """Runs the tests, and gives what became of each."""
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__), prepend=os.pathsep)

    def run(source, *arguments):
        pytester.makepyfile(source)
        return pytester.runpytest_subprocess("-rA", *arguments)

    return run


def test_a_marked_test_fails_at_the_line_of_its_wait(results):
    result = results(TESTS)
    result.assert_outcomes(passed=4, failed=3)
    outcomes = [line for line in result.outlines if line.startswith(("PASSED", "FAILED"))]
    failed = sorted(line.split("::", 1)[1].split(" ")[0] for line in outcomes if line.startswith("FAILED"))
    assert failed == ["TestAll::test_fails", "test_fails", "test_has_its_own_error"]
    result.stdout.fnmatch_lines(["1 call in the block can wait for the GPU:"])
    result.stdout.fnmatch_lines(["*standin.py:*, in synchronize: driver.cuStreamSynchronize(STREAM)"])
    result.stdout.fnmatch_lines(["*KeyError: 'own'"])
    # The failure is the wait, and not a traceback of the plugin.
    assert "pytest_plugin.py" not in result.stdout.str()


def test_entries_of_the_configuration_hold_for_all(results, pytester):
    pytester.makeini("[pytest]\nno_wait_allow =\n    standin.py:synchronize = the tests are about it\n")
    results(TESTS).assert_outcomes(passed=6, failed=1)


def test_an_entry_without_a_reason_ends_the_run(results, pytester):
    pytester.makeini("[pytest]\nno_wait_allow =\n    standin.py:synchronize\n")
    result = results(TESTS)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no_wait_allow: an entry of `allow` is a pattern and a reason*"])


def test_a_machine_without_a_gpu_skips_with_its_reason(results, monkeypatch):
    monkeypatch.setenv("FAKE_NO_DEVICE", "1")
    result = results(TESTS)
    result.assert_outcomes(passed=1, skipped=6)
    result.stdout.fnmatch_lines(["*SKIPPED*no_wait: the CUDA driver sees no GPU here"])


def test_calls_that_cannot_be_seen_fail_the_test_and_do_not_skip_it(results, monkeypatch):
    monkeypatch.setenv("FAKE_TAKEN", "1")
    result = results(TESTS)
    result.assert_outcomes(passed=1, failed=6)
    result.stdout.fnmatch_lines(["*CannotWatchError: another tool in this process has CUPTI's callbacks*"])


def test_the_mark_is_known(results):
    results(TESTS, "--strict-markers").assert_outcomes(passed=4, failed=3)


def test_a_method_of_unittest_is_marked_alike(results):
    source = """
import pytest, unittest
from standin import synchronize

class TestOld(unittest.TestCase):
    @pytest.mark.no_wait
    def test_fails(self): synchronize()
"""
    results(source).assert_outcomes(failed=1)


@pytest.mark.parametrize("arguments", ["[('*', 'a reason')]", "alow=[('*', 'a reason')]", "allow=None", "allow=('*', 'why')"])
def test_a_mistake_in_the_mark_fails_the_test(results, arguments):
    result = results(f"import pytest\n@pytest.mark.no_wait({arguments})\ndef test(): pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no_wait: *allow*"])


def test_entries_that_no_test_needed_are_named_at_the_end(results):
    source = """
import pytest
from standin import synchronize

pytestmark = pytest.mark.no_wait(allow=[("*:synchronize", "needed by one"), ("*:nobody", "of the module")])

@pytest.mark.parametrize("waits", [True, False])
def test(waits):
    if waits:
        synchronize()
"""
    result = results(source)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*: [*]:nobody (of the module)"])
    assert "(needed by one)" not in result.stdout.str()
