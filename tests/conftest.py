"""Options that every test folder shares."""

from __future__ import annotations

import signal

import pytest

from mast_opt import backends
from mast_opt.backends.base import Backend
from mast_opt.errors import BackendUnavailable


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-backends",
        default="",
        metavar="NAMES",
        help="comma-separated solvers (highs,cpsat,…) whose absence fails a test that needs them, instead of skipping",
    )


def pytest_configure(config: pytest.Config) -> None:
    unknown = _required(config) - set(backends.names())
    if unknown:
        raise pytest.UsageError(f"--require-backends: unknown {sorted(unknown)}; expected some of {backends.names()}")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)


def installed(name: str, config: pytest.Config) -> Backend:
    """The named backend; skips the test if it is not installed, or fails it if ``--require-backends`` names it.

    Commercial solvers cannot be asked of everybody; the gate names all open ones, so that none of those is skipped.
    """
    backend = backends.get(name)
    try:
        backend.version()
    except BackendUnavailable as error:
        if name in _required(config):
            pytest.fail(f"--require-backends names {name}, but: {error}", pytrace=False)
        pytest.skip(str(error))
    return backend


def _required(config: pytest.Config) -> set[str]:
    return {name.strip() for name in config.getoption("--require-backends").split(",")} - {""}
