"""`@pytest.mark.no_wait`: the test fails where one of its calls can wait for the GPU. Its fixtures may wait.

    @pytest.mark.no_wait(allow=[("test_model.py:log", "the loss is printed")])
    def test_a_step_does_not_wait(model, batch):
        model(batch)

`no_wait_allow` of the configuration holds entries for all tests, a line each: `train.py:log_loss = the loss is printed`.
"""
import pytest

from . import _allow
from ._native import NoCudaError
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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    marks = list(item.iter_markers("no_wait"))
    if not marks:
        yield
        return
    entries = _of_configuration(item.config)
    region = no_wait(allow=[*entries, *(entry for mark in marks for entry in mark.kwargs.get("allow", []))])
    try:
        region.__enter__()
    except NoCudaError as why:
        pytest.skip(f"no_wait: {why}")
    outcome = yield
    try:
        region.__exit__(*(outcome.excinfo or (None, None, None)))
    except WaitError as error:
        outcome.force_exception(pytest.fail.Exception(str(error), pytrace=False))
