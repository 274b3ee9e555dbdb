"""Logs as text: every event comes back, and what is wrong with a line is named."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Mapping

import pytest

from mast_opt.live.loop.event_log import LogError, event_line, log_lines, read_log
from mast_opt.live.loop.events import (
    EVENTS,
    FORMAT,
    Event,
    Key,
    Placed,
    PlanStep,
    Queued,
    Stored,
    Submitted,
    Timer,
    bid_key,
)
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.problems.job_placement.live_fleet.types import Share

SPEC = JobSpec(tier=2, tasks=3, gpu_types={"h100": 8000}, datasets=("d1", "d2"), duration_ms=5, max_tasks=4)
SHARES = (Share("s1", 2, {0: 1000, 1: 500}), Share("s2", 1, {}))
VALUES: dict[typing.Any, object] = {
    str: "text",
    str | None: "text",
    int: 7,
    bool: False,
    int | None: 4,
    float | None: 1.5,
    JobSpec: SPEC,
    tuple[str, ...]: ("x", "y"),
    tuple[Share, ...]: SHARES,
    tuple[PlanStep, ...]: (PlanStep("copy", "d", "east", "west", 1, 2), PlanStep("drop", "d", "west")),
    Mapping[int, float] | None: {0: 1.25, 3: 2.0},
    Key | None: (None, 0.5, 2, "r"),
}


def filled(cls: type[Event]) -> Event:
    types = typing.get_type_hints(cls)
    return cls(**{field.name: VALUES[types[field.name]] for field in dataclasses.fields(typing.cast(typing.Any, cls))})


@pytest.mark.parametrize("cls", EVENTS.values(), ids=list(EVENTS))
def test_every_event_comes_back(cls: type[Event]) -> None:
    log = [Stored(1, 5, filled(cls))]
    assert list(read_log(log_lines(log, 1))) == log


def test_defaults_are_left_out() -> None:
    assert json.loads(event_line(Stored(3, 10, Submitted("a", JobSpec(tier=1))))) == {
        "seq": 3,
        "at_ms": 10,
        "event": "Submitted",
        "job": "a",
        "spec": {"tier": 1},
    }


def test_key_without_victims() -> None:
    key = bid_key((float("-inf"), 0.0, 0, 0, 0.0, 0.5, "r", "c", "h100"))
    placed = Stored(1, 0, Placed("a", 1, "r", "c", SHARES, key=key))
    assert key[0] is None
    assert list(read_log(log_lines([placed]))) == [placed]


HEAD = f'{{"format": "{FORMAT}"}}\n'
GOOD = '{"seq": 1, "at_ms": 5, "event": "Queued", "job": "a"}\n'
FAULTY = {
    "empty": ([], 'log: expected a first line with "format"'),
    "format": (['{"format": "mast-opt/1"}\n'], "log, row 1: found"),
    "events": ([f'{{"format": "{FORMAT}", "events": "many"}}\n'], "row 1, column events: found 'many'"),
    "cut in a line": ([HEAD, GOOD, '{"seq": 2, "at_'], 'row 3: found \'{"seq": 2, "at_\'; expected the rest of this'),
    "cut at a line": ([f'{{"format": "{FORMAT}", "events": 2}}\n', GOOD], "found '1'; expected 2 events"),
    "unknown event": ([HEAD, GOOD.replace("Queued", "Queud")], "column event: found 'Queud'; expected the name of an"),
    "backwards": ([HEAD, GOOD, '{"seq": 2, "at_ms": 4, "event": "Timer", "name": "t"}\n'], "column at_ms: found '4'"),
    "gap": ([HEAD, GOOD, '{"seq": 3, "at_ms": 5, "event": "Timer", "name": "t"}\n'], "found '3'; expected 2, the"),
    "no JSON": ([HEAD, "Queued a\n"], "row 2: found 'Queued a'; expected an object of JSON"),
    "missing field": ([HEAD, '{"seq": 1, "at_ms": 5, "event": "Queued"}\n'], "column job: expected this field of Q"),
    "further field": ([HEAD, GOOD.replace("}", ', "jobb": 1}')], "column jobb: expected no field of this name"),
    "type": ([HEAD, GOOD.replace('"a"', "3")], "column job: found '3'; expected text"),
    "type inside": (
        [HEAD, '{"seq": 1, "at_ms": 5, "event": "Submitted", "job": "a", "spec": {"tasks": true}}\n'],
        "column tasks: found 'True'; expected a whole number",
    ),
    "time": ([HEAD, GOOD.replace("5", "5.5")], "column at_ms: found '5.5'; expected a whole number of ms"),
}


@pytest.mark.parametrize(("lines", "words"), FAULTY.values(), ids=list(FAULTY))
def test_faults(lines: list[str], words: str) -> None:
    with pytest.raises(LogError) as caught:
        list(read_log(lines))
    assert words in str(caught.value)


def test_events_before_a_fault_are_given_and_faults_are_listed_together() -> None:
    log = read_log([HEAD, GOOD, "x\n", "y\n"])
    assert next(log) == Stored(1, 5, Queued("a"))
    with pytest.raises(LogError) as caught:
        next(log)
    assert [fault.row for fault in caught.value.faults] == [3, 4]


def test_numbers_of_later_lines_follow_a_faulty_one() -> None:
    bad = GOOD.replace("Queued", "Nothing")
    good = event_line(Stored(2, 6, Timer("t"))) + "\n"
    with pytest.raises(LogError) as caught:
        list(read_log([HEAD, bad, good]))
    assert [fault.row for fault in caught.value.faults] == [2]
