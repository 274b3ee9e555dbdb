"""Errors of predicted starts: the first word on each job counts, and those that are cancelled do not."""

from __future__ import annotations

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.start_errors import EXPECTED, HOUR_MS, PROMISED, StartErrors


def placed(job: str) -> ev.Placed:
    return ev.Placed(job, 1, "r", "c", ())


def test_what_was_said_first_is_compared() -> None:
    errors = StartErrors()
    errors.take(0, ev.Promised("a", "r", 4 * HOUR_MS, ("s",)))
    errors.take(10, ev.Promised("a", "r", 3 * HOUR_MS, ("s",)))
    errors.take(0, ev.Promised("b", "r", 2 * HOUR_MS, ("s",)))
    errors.take(0, ev.Promised("none", "r", None, ("s",)))
    errors.say(EXPECTED, "a", HOUR_MS, None)
    errors.say(EXPECTED, "c", HOUR_MS, 2 * HOUR_MS)
    errors.say(EXPECTED, "d", HOUR_MS, 2 * HOUR_MS)
    errors.take(HOUR_MS, ev.Cancelled("d"))
    for job in "abcd":
        errors.take(3 * HOUR_MS, placed(job))
    errors.take(9 * HOUR_MS, placed("a"))
    found = errors.figures()
    assert found.keys() == {PROMISED, EXPECTED}
    assert found[PROMISED] == {
        "jobs": 2,
        "started_by_then": 0.5,
        "within_factor_2": 1.0,
        "too_long_h_p10": -1.0,
        "too_long_h_p50": 1.0,
        "too_long_h_p90": 1.0,
    }
    assert found[EXPECTED]["too_long_h_p50"] == -1.0
    assert found[EXPECTED]["within_factor_2"] == 1.0


def test_a_wait_of_less_than_half_or_more_than_twice_is_not_close() -> None:
    for said_h, close in ((1, 0.0), (2, 1.0), (8, 1.0), (9, 0.0)):
        errors = StartErrors()
        errors.say(EXPECTED, "a", 0, said_h * HOUR_MS)
        errors.take(4 * HOUR_MS, placed("a"))
        assert errors.figures()[EXPECTED]["within_factor_2"] == close, said_h
