"""Two tiers of tests.

The first one starts no other process and needs no package but those of the dependency group ``test``. A test is of the
second tier if it is marked ``second_tier``, needs a program of the machine, runs on CBC or in processes, or belongs to
a page with commands or of the service. A module that imports a package of another group is not collected in the first
tier, so all its tests are of the second. Whatever is run, a test of the first tier that starts a process fails.
"""

from __future__ import annotations

import multiprocessing.process
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Generator, Sequence
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import pytest

TIERS = {
    "first": "tests of the first tier, which start no process; python3 make.py test --all runs the others too",
    "second": "tests of the second tier, which start processes or need packages of test-live and test-full",
    "all": "tests of both tiers",
}
PROGRAMS = {
    "kubectl",
    "promtool",
    "/dev/full",
    "LibreOffice",
    "PostgreSQL",
    "browser",
    "file size limits",
    "kube-apiserver",
    "setpriv",
    "skypilot",
}
"""Those of ``NEEDS`` that are another process, or stand for a full disk."""
CHILDREN = {"cbc", "processes"}
"""Values of parameters of a test with which it starts processes."""
COMPILES = "kernel_compilation import help_out"
"""In the command of a process that compiles kernels for ours: on its first run, a test may start it."""
SERVICE = "mast_opt.live.service"
COLLECTED = "MAST_OPT_FIRST_TIER"
"""Variable of the environment by which the workers of a run know what the first tier collects."""
IMPORTED = {"pyyaml": "yaml"}
"""Distribution → the package that it installs, where the names differ."""


class ElsewhereFinder(MetaPathFinder):
    """Refuses to import packages that only the second tier has.

    Args:
        packages: their names.
    """

    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = frozenset(packages)
        self.refused = False

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in self.packages:
            self.refused = True
            raise ModuleNotFoundError(
                f"the first tier of tests does without {name}: mark the test second_tier", name=name
            )


class Plugin:
    """What pytest does about tiers."""

    def __init__(self, tier: str) -> None:
        self.tier = tier
        self.first = frozenset[str]() if tier != "second" else _first_tier()
        self.finder = ElsewhereFinder(packages_of("test-live", "test-full") if tier == "first" else ())
        self.running: pytest.Item | None = None
        sys.meta_path.insert(0, self.finder)
        for owner, name in (
            (subprocess.Popen, "__init__"),
            (multiprocessing.process.BaseProcess, "start"),
            (os, "fork"),
        ):
            if hasattr(owner, name):
                setattr(owner, name, self._guarded(getattr(owner, name)))

    def _guarded(self, start: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*arguments: Any, **named: Any) -> Any:
            if self.running is not None and COMPILES not in str((arguments[1:], named)):
                pytest.fail("a test of the first tier starts a process: mark it second_tier")
            return start(*arguments, **named)

        return guarded

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self.running = None if _is_second(item) else item
        try:
            return (yield)
        finally:
            self.running = None

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        self.finder.refused = False
        report = yield
        if report.failed and self.finder.refused:
            report.outcome, report.result = "passed", []
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        pages = {item.path for item in items if _is_command(item)}
        for item in items:
            needs = {mark.args[0] for mark in item.iter_markers("needs")}
            parameters = getattr(item, "callspec", None)
            chosen = set() if parameters is None else set(map(str, parameters.params.values()))
            elsewhere = self.tier == "second" and item.nodeid.split("::")[0] not in self.first
            if elsewhere or item.path in pages or needs & PROGRAMS or chosen & CHILDREN:
                item.add_marker("second_tier")
        if self.tier != "all":
            left_out = [item for item in items if _is_second(item) == (self.tier == "first")]
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if _is_second(item) != (self.tier == "first")]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
        """Say which of the named files have no test of the first tier, unless a run was narrowed or ended early."""
        config = terminalreporter.config
        narrowed = config.option.keyword or config.option.markexpr or config.args_source is not config.ArgsSource.ARGS
        if (
            self.tier == "first"
            and not narrowed
            and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        ):
            ran = [
                report.nodeid
                for found in terminalreporter.stats.values()
                for report in found
                if hasattr(report, "nodeid")
            ]
            absent = [name for name in config.args if not any(one.startswith(_node(config, name)) for one in ran)]
            if absent:
                names = " ".join(absent)
                terminalreporter.write_line(
                    f"No test of the first tier is in {names}. To run those of the second tier:\n"
                    f"    python3 make.py test --rest {names}"
                )

    def pytest_report_header(self) -> str:
        return TIERS[self.tier]


def _first_tier() -> frozenset[str]:
    """Modules and pages of which the first tier collects something: the second one has all tests of the others.

    What a module imports is known once it is imported, so a process collects the first tier. The workers of a run
    inherit its answer.
    """
    if COLLECTED not in os.environ:
        command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--tier", "first"]
        found = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True, check=False)
        if found.returncode != 0:
            raise pytest.UsageError(
                f"the first tier cannot be collected:\n{found.stdout[-2000:]}{found.stderr[-2000:]}"
            )
        os.environ[COLLECTED] = "\n".join(
            sorted({line.split("::")[0] for line in found.stdout.splitlines() if "::" in line})
        )
    return frozenset(os.environ[COLLECTED].split("\n"))


def packages_of(*groups: str) -> list[str]:
    """Names under which the packages of these dependency groups are imported."""
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [line for group in groups for line in settings["dependency-groups"][group]]
    names = [re.split(r"[^\w.-]", line)[0] for line in wanted]
    return [IMPORTED.get(name, name.replace("-", "_")) for name in names]


def _node(config: pytest.Config, argument: str) -> str:
    """What the node ids of the tests that an argument names begin with."""
    path, *parts = argument.split("::")
    name = os.path.relpath(config.invocation_params.dir / path, config.rootpath)
    return "::".join([name.replace(os.sep, "/"), *parts])


def _is_second(item: pytest.Item) -> bool:
    return item.get_closest_marker("second_tier") is not None


def _is_command(item: pytest.Item) -> bool:
    """Is it a block of a page that a shell runs, or that imports the service with its packages?"""
    example = getattr(item, "example", None)
    if example is None:
        return False
    return getattr(example.region.evaluator, "__name__", "") == "_in_a_shell" or SERVICE in str(example.parsed)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=list(TIERS), default="all", help="which tests: see tests/tiers.py")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "second_tier: starts a process, or needs more packages than the group test has")
    config.pluginmanager.register(Plugin(config.getoption("--tier")), "tiers")
