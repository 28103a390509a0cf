"""`@pytest.mark.no_wait`: the test fails where one of its calls can wait for the GPU. Its fixtures may wait.

    @pytest.mark.no_wait(allow=[("test_model.py:log", "the loss is printed")])
    def test_a_step_does_not_wait(model, batch):
        model(batch)

`no_wait_allow` of the configuration holds entries for all tests, a line each: `train.py:log_loss = the loss is printed`.
"""
import pytest

from . import _allow
from ._native import CannotWatchError, NoCudaError
from ._region import no_wait
from ._waits import WaitError


def pytest_addoption(parser):
    help = "waits that tests marked with no_wait may have, a line each: a pattern, `=` and a reason"
    parser.addini("no_wait_allow", help, type="linelist", default=[])


def pytest_configure(config):
    text = "no_wait(allow=[(pattern, reason), ...]): fails where a call of the test can wait for the GPU."
    config.addinivalue_line("markers", text)
    _of_configuration(config)


def _of_configuration(config):
    entries = [tuple(part.strip() for part in line.partition("=")[::2]) for line in config.getini("no_wait_allow")]
    try:
        return _allow.checked(entries)
    except ValueError as error:
        raise pytest.UsageError(f"no_wait_allow: {error}") from None


def _of_marks(item):
    """Each mark's entries, with where it stands: a module, a class or a function, whatever its parameters are."""
    found = []
    for node, mark in item.iter_markers_with_node("no_wait"):
        if mark.args or set(mark.kwargs) - {"allow"}:
            raise ValueError("the mark takes `allow=[(pattern, reason), ...]`, by this name, and nothing else")
        found.append((node.nodeid.partition("[")[0], _allow.checked(mark.kwargs.get("allow", ()))))
    return found


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    try:
        marks = _of_marks(item)
    except ValueError as error:
        pytest.fail(f"no_wait: {error}", pytrace=False)
    if not marks:
        yield
        return
    lists = [("no_wait_allow", _of_configuration(item.config)), *marks]
    region = no_wait(allow=[entry for _, entries in lists for entry in entries])
    try:
        region.__enter__()
    except NoCudaError as why:
        pytest.skip(f"no_wait: {why}")
    outcome = yield
    try:
        region.__exit__(*(outcome.excinfo or (None, None, None)))
    except (WaitError, CannotWatchError) as error:
        outcome.force_exception(pytest.fail.Exception(str(error), pytrace=False))
    if outcome.excinfo is None:
        item.no_wait_entries = [[where, *entry, entry[0] in region._matched] for where, entries in lists for entry in entries]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    if call.when == "call":
        # What a report has is sent from the processes of pytest-xdist, too.
        outcome.get_result().no_wait_entries = getattr(item, "no_wait_entries", [])


def pytest_terminal_summary(terminalreporter):
    """Names the entries that no test needed."""
    reports = (report for reports in terminalreporter.stats.values() for report in reports)
    matched = {}
    for *entry, is_matched in (entry for report in reports for entry in getattr(report, "no_wait_entries", ())):
        matched[tuple(entry)] = matched.get(tuple(entry), False) or is_matched
    if not all(matched.values()):
        terminalreporter.section("no_wait: entries that no wait of these tests matched")
        for where, pattern, reason in (entry for entry, is_matched in matched.items() if not is_matched):
            terminalreporter.line(f"{where}: {pattern} ({reason})")
