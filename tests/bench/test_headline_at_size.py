"""The headline at the published size: its measures on a log by hand, and its command on a tiny organisation."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import headline_at_size
from benchmarks.headline_in_time import SIZES, SMALL, read
from benchmarks.headline_variants import VARIANTS
from benchmarks.urgent_demand import urgent_demand
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.problems.job_placement.live_fleet.types import Share

HOUR_MS = 3_600_000


def up(name: str, region: str, kind: str) -> ev.ServerUp:
    return ev.ServerUp(name, region, f"{region}-c", "r", kind, 8)


def asks(name: str, tier: int = 0, *kinds: str) -> ev.Submitted:
    types = dict.fromkeys(kinds, 8000) or None
    return ev.Submitted(name, JobSpec(tier=tier, mgpu=8000, datasets=("d",), duration_ms=HOUR_MS, gpu_types=types))


def test_ratios_by_what_is_merged() -> None:
    events = [
        *(up("s", "east", "a100"), up("t", "east", "h100"), up("u", "west", "h100")),
        ev.DatasetCreated("d", 10, ("east",)),
        *(asks("a", 0, "a100"), asks("b", 0, "a100"), asks("low", 1)),
        ev.Placed("a", 1, "east", "east-c", (Share("s", 1, dict.fromkeys(range(8), 1000)),)),
        ev.Started("a", 1),
    ]
    log = [ev.Stored(at + 1, 0, event) for at, event in enumerate(events)]
    log.append(ev.Stored(len(log) + 1, 12 * HOUR_MS, asks("c", 0, "h100")))
    log.append(ev.Stored(len(log) + 1, 20 * HOUR_MS, asks("late")))
    found = urgent_demand(log, HOUR_MS, 19 * HOUR_MS)  # looks at 1, 7, 13 and 19 h
    assert found.by_cell == pytest.approx(2.0)  # 16 GPUs are asked of the 8 of their type in east
    assert found.by_region == pytest.approx((1.0 + 1.0 + 1.5 + 1.5) / 4)
    assert found.running_by_region == pytest.approx(0.5)
    assert found.running == pytest.approx(1 / 3)
    assert found.waiting == pytest.approx((1 / 3 + 1 / 3 + 2 / 3 + 2 / 3) / 4)
    assert found.slope is not None
    assert found.slope > 0
    assert urgent_demand(log, 21 * HOUR_MS, 22 * HOUR_MS).slope is None


def test_who_waits_for_data_alone() -> None:
    events = [
        *(up("s", "east", "a100"), up("t", "west", "a100")),
        ev.DatasetCreated("d", 10, ("east",)),
        *(asks("a"), asks("b")),
    ]
    log = [ev.Stored(at + 1, 0, event) for at, event in enumerate(events)]
    assert urgent_demand([*log, ev.Stored(9, HOUR_MS + 1, asks("late"))], HOUR_MS, HOUR_MS).blocked == 0.0
    log += [ev.Stored(7, 0, ev.Placed("a", 1, "east", "east-c", (Share("s", 1, dict.fromkeys(range(8), 1000)),)))]
    log += [ev.Stored(8, 0, ev.Started("a", 1)), ev.Stored(9, HOUR_MS + 1, asks("late"))]
    assert urgent_demand(log, HOUR_MS, HOUR_MS).blocked == 0.5  # b, for which only west has room


def test_the_command_keeps_runs_and_prints_their_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny = {**SMALL, "days": 2, "gpus": 120, "regions": 3, "datasets": 60}
    assert set(tiny) == set(SIZES) <= set(headline_at_size.FULL)
    monkeypatch.setattr(headline_at_size, "SMALL", tiny)
    file = tmp_path / "runs.jsonl"
    for _ in range(2):
        arguments = f"--small --skew 1.3 --warm-up-days 1 --variants before room-no-plan --out {file}".split()
        monkeypatch.setattr(sys, "argv", ["headline_at_size", *arguments])
        headline_at_size.main()
    head, runs = read(file)
    assert head is not None
    assert head["organisation"]["gpus"] == 120
    assert [one["variant"] for one in runs] == ["before", "room-no-plan"]
    figures = runs[1]["figures"]
    assert 0 < figures["urgent_running"] < 2
    rows = capsys.readouterr().out.splitlines()[-2:]
    assert [row.split("|")[1].strip() for row in rows] == ["`before`", "`room-no-plan`"]


def test_what_is_taken_away_is_taken_from_room() -> None:
    room = VARIANTS["room"].params
    for name in headline_at_size.ROWS:
        if name.startswith("room-"):
            assert room.items() <= VARIANTS[name].params.items()
            assert VARIANTS[name] != VARIANTS["room"]
