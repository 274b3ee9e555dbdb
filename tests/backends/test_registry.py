"""Backends by name: found lazily, described honestly, extended by other packages."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import mast_opt
from mast_opt.cli import main
from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import BackendError, BackendUnavailable, PluginWarning, UsageError
from mast_opt.core.solve_result import SolveParams, SolveResult, Status
from mast_opt.problems import backends
from mast_opt.problems.backends.base import Backend
from mast_opt.problems.mip import Mip
from tests import plugins
from tests.backends.programs import program
from tests.platforms import needs

CONTRACTS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
LIBRARIES: list[str] = next(
    contract["forbidden_modules"] for contract in CONTRACTS if contract["name"].startswith("solver libraries")
)
OWN = tuple(backends.BUILT_IN)

pytest_plugins = ["pytester"]


class Zero:
    """A backend that another package might bring: it only knows the origin."""

    name = "zero"
    package = "zero-solver"

    def version(self) -> str:
        return "0.0"

    def solve(self, mip: Mip, params: SolveParams) -> SolveResult:
        return SolveResult(Status.FEASIBLE, np.zeros(len(mip.cost)), mip.offset, None, None, "zero")


def offer(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    plugins.offer(monkeypatch, backends.BACKENDS.group, *points)


@pytest.mark.second_tier
def test_importing_backends_loads_no_solver() -> None:
    code = f"import sys, mast_opt, mast_opt.problems.backends; print([m for m in {LIBRARIES} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.second_tier
@pytest.mark.parametrize("first", ["highspy", "ortools.sat.python.cp_model"])
def test_highs_and_cpsat_live_in_one_process_in_either_order(first: str) -> None:
    code = (
        f"import {first}\n"
        "from mast_opt.problems import backends\n"
        "from mast_opt.core.solve_result import SolveParams\n"
        "from tests.backends.programs import knapsack\n"
        "mip, minimum = knapsack()\n"
        "for name in ('cpsat', 'highs', 'cpsat') if 'ortools' in sys.modules else ('highs', 'cpsat', 'highs'):\n"
        "    assert backends.get(name).solve(mip, SolveParams()).objective == minimum, name\n"
    )
    subprocess.run([sys.executable, "-c", "import sys\n" + code], check=True)


def test_names_and_unknown_names() -> None:
    assert backends.names()[: len(OWN)] == OWN
    with pytest.raises(UsageError, match=r"'higs'.*highs, cpsat"):
        backends.get("higs")


@pytest.mark.parametrize("name", OWN)
def test_each_is_a_backend_that_knows_its_name(name: str) -> None:
    backend = backends.get(name)
    assert isinstance(backend, Backend)
    assert backend.name == name


@pytest.mark.parametrize("name", OWN)
def test_a_missing_library_is_explained(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in LIBRARIES:
        monkeypatch.setitem(sys.modules, library, None)
    for loaded in [module for module in sys.modules if module.startswith("ortools.")]:
        monkeypatch.delitem(sys.modules, loaded)
    backend = backends.get(name)
    with pytest.raises(BackendUnavailable, match="pip install"):
        backend.version()
    with pytest.raises(BackendUnavailable, match="pip install"):
        backend.solve(program([1.0]), SolveParams())


@pytest.mark.second_tier
def test_describe_tells_version_or_reason() -> None:
    described = {entry.name: entry for entry in backends.describe()}
    assert tuple(described) == backends.names()
    for entry in described.values():
        assert (entry.version is None) != (entry.reason is None)
        assert entry.package
    assert described["highs"].version is not None


def test_another_package_adds_a_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("zero", f"{__name__}:Zero"), ("highs", f"{__name__}:Zero"))
    assert backends.names() == (*OWN, "zero")
    assert backends.get("zero").version() == "0.0"
    with pytest.warns(PluginWarning, match=r"highs of package demo 1.5 .* it is not used"):
        assert type(backends.get("highs")).__name__ == "Highs", "nobody replaces ours"


@pytest.mark.second_tier
@pytest.mark.parametrize("value", ["no_such_module:Zero", f"{__name__}:LIBRARIES", f"{__name__}:program"])
def test_a_broken_addition_is_named_and_harms_nobody(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, ("broken", value))
    with pytest.raises(BackendUnavailable, match="broken"):
        backends.get("broken")
    broken = backends.describe()[-1]
    assert (broken.name, broken.version) == ("broken", None)


@pytest.mark.parametrize("version", ["1.13.0", "1.13.1", "1.14.0"])
def test_highs_refuses_versions_with_wrong_answers(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import highspy

    for part, number in zip(("MAJOR", "MINOR", "PATCH"), version.split("."), strict=True):
        monkeypatch.setattr(highspy, f"HIGHS_VERSION_{part}", int(number))
    with pytest.raises(BackendUnavailable, match=rf"{version} calls wrong answers optimal.*pip install 'highspy"):
        backends.get("highs").solve(program([1.0]), SolveParams())
    listed = backends._description("highs")
    assert listed.version is None
    assert f"HiGHS {version} calls wrong answers optimal" in str(listed.reason)


CONFTEST = "from tests.conftest import *  # noqa: F403"


@pytest.mark.second_tier
def test_required_backends_that_are_missing_end_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile("def test_one(): pass")
    quiet = ("-p", "no:cacheprovider")
    pytester.runpytest_inprocess(*quiet, "--require-backends", "highs,cbc").assert_outcomes(passed=1)
    assert pytester.runpytest_inprocess(*quiet, "--require-backends", "nonesuch").ret == pytest.ExitCode.USAGE_ERROR

    def missing(self: object) -> str:
        raise BackendUnavailable("not here")

    monkeypatch.setattr(type(backends.get("cbc")), "version", missing)
    assert pytester.runpytest_inprocess(*quiet, "--require-backends", "highs").ret == pytest.ExitCode.OK
    assert pytester.runpytest_inprocess(*quiet, "--require-backends", "highs,cbc").ret == pytest.ExitCode.USAGE_ERROR


def test_what_the_machine_lacks_is_left_out_or_ends_the_run(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(
        """
        from tests.platforms import needs

        @needs("links")
        def test_one(): pass

        @needs("signals")
        def test_other(): pass
        """
    )
    quiet = ("-p", "no:cacheprovider")
    monkeypatch.setattr("tests.conftest.ABSENT", {})
    pytester.runpytest_inprocess(*quiet, "--require-all").assert_outcomes(passed=2)
    monkeypatch.setattr("tests.conftest.ABSENT", {"links": "links of some sort"})
    ended = pytester.runpytest_inprocess(*quiet)
    ended.assert_outcomes(passed=1, deselected=1)
    ended.stdout.fnmatch_lines(["tests left out, since this machine lacks: links of some sort"])
    assert pytester.runpytest_inprocess(*quiet, "--require-all").ret == pytest.ExitCode.USAGE_ERROR


def test_a_need_has_a_name_that_is_known() -> None:
    with pytest.raises(KeyError, match="nothing called 'wings'"):
        needs("wings")


@pytest.mark.second_tier
@pytest.mark.parametrize("raised", ["SystemExit", "RuntimeError", "ImportError"])
@pytest.mark.parametrize("where", ["loading", "version"])
def test_a_foreign_backend_that_fails_does_not_end_the_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, raised: str, where: str
) -> None:
    start, version = ("pass", f"raise {raised}(3)") if where == "version" else (f"raise {raised}(3)", "return '1'")
    (tmp_path / f"leaving_{where}_{raised}.py").write_text(
        f"class Leaving:\n    name = package = 'leaving'\n    def __init__(self): {start}\n"
        f"    def version(self): {version}\n    def solve(self, mip, params): ...\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    offer(monkeypatch, ("leaving", f"leaving_{where}_{raised}:Leaving"))
    described = {found.name: found for found in backends.describe()}
    assert described["highs"].version
    assert described["leaving"].version is None
    assert f"{raised}: 3" in (described["leaving"].reason or "")


@pytest.mark.parametrize("raised", ["SystemExit", "RuntimeError", "ValueError"])
@pytest.mark.parametrize("where", ["version", "solve"])
def test_a_foreign_backend_that_fails_in_a_solve_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, raised: str, where: str
) -> None:
    failing = f"raise {raised}('no\\nluck')"
    version, solve = (failing, "...") if where == "version" else ("return '1'", failing)
    module = f"failing_{where}_{raised}"
    (tmp_path / f"{module}.py").write_text(
        "class Failing:\n    name = package = 'failing'\n"
        f"    def version(self): {version}\n    def solve(self, mip, params): {solve}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    offer(monkeypatch, ("failing", f"{module}:Failing"))
    problem = mast_opt.generate("task-reassignment", machines=2, processes=3)
    with pytest.raises(BackendError, match="failing") as caught:
        mast_opt.solve(problem, "failing")
    assert f"{raised}: no\\nluck" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("x", [None, np.zeros(1), np.array([0.0, np.nan])])
def test_what_a_foreign_backend_returns_is_checked(monkeypatch: pytest.MonkeyPatch, x: FloatArray | None) -> None:
    monkeypatch.setattr(Zero, "solve", lambda self, mip, params: SolveResult(Status.FEASIBLE, x, 0.0, None, None, ""))
    offer(monkeypatch, ("zero", f"{__name__}:Zero"))
    with pytest.raises(BackendError, match="solve of the backend zero"):
        backends.get("zero").solve(program([1.0, 1.0]), SolveParams())


@pytest.mark.second_tier
def test_the_words_of_a_foreign_backend_stay_on_one_line_of_the_list(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def version(self: object) -> str:
        raise BackendUnavailable("no licence\nhighs  forged \x1b[2J")

    monkeypatch.setattr(Zero, "version", version)
    offer(monkeypatch, ("zero", f"{__name__}:Zero"))
    assert main(["backends"]) == 0
    out, _ = capfd.readouterr()
    assert "\x1b" not in out
    assert not any(line.startswith("highs  forged") for line in out.splitlines())
    assert "no licence\\nhighs" in out
