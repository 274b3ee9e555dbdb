"""Plug-ins: found by name, loaded when they are used, and refused without harm to others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mast_opt.core.errors import MastOptError, PluginError, PluginWarning, UsageError
from mast_opt.core.plugins import Extensions, PlugIn
from tests.plugins import offer

GROUP = "mast_opt.things"
LIMIT = 7
HERE = "tests.core.test_plugins"


def things() -> Extensions[int]:
    return Extensions(GROUP, "thing", {"one": 1, "most": "sys:maxsize"}, int, reserved=("zero",))


def test_own_ones_come_first_and_may_be_loaded_later(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, GROUP, ("limit", f"{HERE}:LIMIT"))
    assert list(things()) == ["one", "most", "limit"]
    assert len(things()) == 3
    assert [things()[name] for name in things()] == [1, sys.maxsize, LIMIT]
    assert list(things().plug_ins()) == [PlugIn(GROUP, "limit", "demo 1.5", f"{HERE}:LIMIT", None)]
    assert [things().package(name) for name in things()] == [None, None, "demo 1.5"]


def test_names_that_nothing_has_are_answered_by_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, GROUP)
    with pytest.raises(UsageError, match="'mots'; expected one of: two, one, most; did you mean 'most'"):
        things().named("mots", also=["two"])
    with pytest.raises(KeyError):
        things()["mots"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no_such_module:X", "cannot be loaded: ModuleNotFoundError"),
        (f"{HERE}:NOTHING", "cannot be loaded: AttributeError"),
        (f"{HERE}:GROUP", "is of type str; expected builtins.int"),
    ],
)
def test_a_broken_one_is_named_and_harms_nobody(monkeypatch: pytest.MonkeyPatch, value: str, words: str) -> None:
    offer(monkeypatch, GROUP, ("broken", value), ("limit", f"{HERE}:LIMIT"))
    with pytest.raises(PluginError, match=f"the thing broken of package demo 1.5 .{value}. {words}"):
        things().named("broken")
    assert [name for name, _ in things().usable()] == ["one", "most", "limit"]
    assert [one.name for one in things().plug_ins() if one.reason is not None and words in one.reason] == ["broken"]


def test_one_that_ends_the_process_does_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "leaving_thing.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    offer(monkeypatch, GROUP, ("leaving", "leaving_thing:X"))
    with pytest.raises(PluginError, match="SystemExit: 3"):
        things()["leaving"]


def test_the_name_of_an_own_one_is_refused_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, GROUP, ("one", f"{HERE}:LIMIT"))
    assert list(things()) == ["one", "most"]
    words = f"the thing one of package demo 1.5 .{HERE}:LIMIT. has a name of mast-opt's own; it is not used"
    with pytest.warns(PluginWarning, match=words):
        assert things()["one"] == 1
    (found,) = things().plug_ins()
    assert found.reason is not None
    assert "not used" in found.reason


def test_reserved_names_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, GROUP, ("zero", f"{HERE}:LIMIT"))
    assert list(things()) == ["one", "most"]
    with pytest.raises(PluginError, match=r"the thing zero of package demo 1.5 .* has a name of mast-opt's own"):
        things().named("zero")


def test_a_name_of_two_packages_is_that_of_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, GROUP, ("limit", f"{HERE}:LIMIT"), ("limit", "sys:maxsize"))
    assert "limit" not in things()
    with pytest.raises(PluginError, match=r"\(sys:maxsize\) and the thing limit of .* have one name"):
        things().named("limit")
    assert [one.reason is None for one in things().plug_ins()] == [False, False]


def test_errors_of_a_plug_in_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, GROUP, ("limit", f"{HERE}:LIMIT"))
    with (
        pytest.raises(PluginError, match=r"the thing limit of package demo 1.5 .* failed: ZeroDivisionError"),
        things().blaming("limit"),
    ):
        _ = 1 / (LIMIT - 7)
    with pytest.raises(ZeroDivisionError), things().blaming("one"):
        _ = 1 / (LIMIT - 7)
    with pytest.raises(UsageError), things().blaming("limit"):
        raise UsageError("it is the user's mistake")
    with pytest.raises(KeyboardInterrupt), things().blaming("limit"):
        raise KeyboardInterrupt
    assert issubclass(PluginError, MastOptError)
