"""Options that every test folder shares."""

from __future__ import annotations

import signal
from collections.abc import Generator

import pytest

from mast_opt import backends
from tests.solvers import MISSING, is_here


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-backends",
        default="",
        metavar="NAMES",
        help="comma-separated solvers (highs,gurobi,…) without which no test is run",
    )
    parser.addoption("--skip-nothing", action="store_true", help="a test that would be skipped fails")


def pytest_configure(config: pytest.Config) -> None:
    required = {name.strip() for name in config.getoption("--require-backends").split(",")} - {""}
    unknown = required - set(backends.names())
    if unknown:
        raise pytest.UsageError(f"--require-backends: unknown {sorted(unknown)}; expected some of {backends.names()}")
    missing = sorted(name for name in required if not is_here(name))
    if missing:
        raise pytest.UsageError(f"--require-backends: {missing} cannot be used here; 'mast-opt backends' says why")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    return f"solvers that are not installed, and so not tested: {', '.join(MISSING) or 'none'}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and item.config.getoption("--skip-nothing"):
        report.outcome = "failed"
        report.longrepr = f"--skip-nothing, but: {report.longrepr}"
    return report
