"""Tiers of tests: what the first one must not do, and that it draws the same examples on every run."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.files import ROOT
from tests.tiers import ElsewhereFinder, packages_of

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
START: dict[str, Callable[[], object]] = {
    "subprocess": lambda: subprocess.run([sys.executable, "--version"], check=False),
    "multiprocessing": lambda: multiprocessing.get_context("spawn").Process(target=print).start(),
}
if hasattr(os, "fork"):
    START["fork"] = lambda: os.fork() or os._exit(0)


@pytest.mark.parametrize("way", START)
def test_a_test_without_the_marker_starts_no_process(way: str) -> None:
    with pytest.raises(pytest.fail.Exception, match="mark it second_tier"):
        START[way]()


@pytest.mark.second_tier
def test_a_test_with_the_marker_starts_processes() -> None:
    assert subprocess.run([sys.executable, "--version"], capture_output=True, check=False).returncode == 0


def test_packages_of_the_second_tier_are_refused() -> None:
    elsewhere = packages_of("test-live", "test-full")
    assert {"yaml", "openpyxl", "psycopg", "prometheus_client"} <= set(elsewhere)
    with pytest.raises(ModuleNotFoundError, match="does without openpyxl"):
        ElsewhereFinder(elsewhere).find_spec("openpyxl")


@pytest.mark.second_tier
def test_every_test_is_of_one_tier() -> None:
    """Of modules that the first tier cannot import, one that needs a marker as well, and one that it can."""
    modules = ["tests/io/test_template.py", "tests/service/test_turns.py", "tests/test_tiers.py"]
    collected = {
        tier: {line for line in _collected(tier, *modules) if "::" in line} for tier in ("all", "first", "second")
    }
    assert not collected["first"] & collected["second"]
    assert collected["first"] | collected["second"] == collected["all"]
    assert {name.split("::")[0] for name in collected["second"]} == set(modules)


@pytest.mark.second_tier
def test_a_file_of_the_other_tier_is_named() -> None:
    other, own = "tests/io/test_template.py", "tests/test_make.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tier", "first"]
    for files, code in (([other], 5), ([other, own], 0), ([own], 0)):
        ended = subprocess.run([*command, *files], cwd=ROOT, capture_output=True, text=True, check=False)
        assert ended.returncode == code
        assert (f"No test of the first tier is in {other}. To" in ended.stdout) == (other in files)
    ended = subprocess.run([*command, "-k", "nothing", other], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "No test of the first tier" not in ended.stdout


def _collected(tier: str, *modules: str) -> list[str]:
    """Lines that pytest prints of the tests that it collects in a tier."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "--tier", tier]
    return subprocess.run(
        [*command, *modules], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_the_first_tier_needs_six_packages() -> None:
    assert len(SETTINGS["dependency-groups"]["test"]) <= 6


def test_every_run_of_the_first_tier_draws_the_same_examples(request: pytest.FixtureRequest) -> None:
    assert settings.get_profile("same").derandomize
    assert request.config.getoption("hypothesis_profile") == "random" or settings().derandomize


def drawn() -> list[int]:
    """What a property test of always the same name is given."""
    seen: list[int] = []

    @settings(max_examples=300)
    @given(st.integers(0, 1_000_000))
    def test(value: int) -> None:
        seen.append(value)

    test()
    return seen


def test_examples_do_not_depend_on_what_else_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if settings().derandomize:  # not with --hypothesis-profile random
        before = drawn()
        (tmp_path / "tariffs_of_nowhere.py").write_text("\n".join(f"N{n} = {777_000 + n}" for n in range(200)))
        monkeypatch.syspath_prepend(tmp_path)
        importlib.import_module("tariffs_of_nowhere")
        assert drawn() == before
