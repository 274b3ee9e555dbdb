"""Options that every test folder shares."""

from __future__ import annotations

import signal

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from mast_opt.problems import backends
from tests.platforms import ABSENT
from tests.solvers import MISSING, is_here

settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("random", deadline=None, print_blob=True)
settings.load_profile("same")
vars(providers)["is_local_module_file"] = lambda path: False
"""Hypothesis draws constants of the project's modules that happen to be imported, which depends on the other tests of
a run (findings/hypothesis-derandomize-follows-imports.sh)."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-backends",
        default="",
        metavar="NAMES",
        help="comma-separated solvers (highs,gurobi,…) without which no test is run",
    )
    parser.addoption(
        "--require-all", action="store_true", help="run no test on a machine on which some must be left out"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(name): left out where the machine lacks it; see tests/platforms.py")
    required = {name.strip() for name in config.getoption("--require-backends").split(",")} - {""}
    unknown = required - set(backends.names())
    if unknown:
        raise pytest.UsageError(f"--require-backends: unknown {sorted(unknown)}; expected some of {backends.names()}")
    missing = sorted(name for name in required if not is_here(name))
    if missing:
        raise pytest.UsageError(f"--require-backends: {missing} cannot be used here; 'mast-opt backends' says why")
    if ABSENT and config.getoption("--require-all"):
        raise pytest.UsageError(f"--require-all: this machine lacks {'; '.join(ABSENT.values())}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> list[str]:
    return [
        f"solvers that are not installed, and so not tested: {', '.join(MISSING) or 'none'}",
        f"tests left out, since this machine lacks: {'; '.join(ABSENT.values()) or 'nothing'}",
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = [item for item in items if any(mark.args[0] in ABSENT for mark in item.iter_markers("needs"))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
