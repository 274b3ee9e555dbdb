"""Limits of speed: what is beyond them is named, and every measure has one."""

from __future__ import annotations

import tomllib
from collections.abc import Callable

import pytest

from benchmarks import speed_limits
from benchmarks.speed_limits import LIMITS, beyond, measured, measures


def test_a_measure_is_a_mean_in_yardsticks(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(speed_limits, "yardstick", lambda: calls.append("yardstick"))
    seconds = iter([6.0, 2.0, 4.0, 2.0])

    def timed(work: Callable[[], object]) -> float:
        work()
        return next(seconds)

    monkeypatch.setattr(speed_limits, "timed", timed)
    assert measured({"a": lambda: calls.append("a")}, runs=2) == {"a": (6.0 / 2.0 + 4.0 / 2.0) / 2}
    assert calls == ["a", "a", "yardstick", "a", "yardstick"]  # the first run does not count


def test_what_is_beyond_its_limit() -> None:
    assert beyond({"a": 1.0, "b": 2.0}, {"a": 1.0, "b": 2.0}) == []
    found = beyond({"a": 1.1, "new": 1.0}, {"a": 1.0, "old": 1.0})
    assert [line.split(":")[0] for line in found] == ["new", "a", "old"]


def test_every_measure_has_a_limit() -> None:
    assert measures().keys() == tomllib.loads(LIMITS.read_text()).keys()
