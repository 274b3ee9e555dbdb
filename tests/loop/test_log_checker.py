"""The checker of logs: a sound log passes, and every way to break it is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mast_opt.live.loop import events as ev
from mast_opt.live.loop.job_spec import JobSpec
from mast_opt.live.loop.log_checker import check_log
from mast_opt.problems.job_placement.live_fleet.types import Share
from tests.loop.test_metrics import stored


def up(server: str, region: str = "r", rack: str = "k", **changed: Any) -> ev.ServerUp:
    return replace(ev.ServerUp(server, region, "c", rack, "h100", 8, 64, 512), **changed)


def share(server: str, tasks: int, *gpus: int, milli: int = 1000) -> Share:
    return Share(server, tasks, dict.fromkeys(gpus, milli))


BIG = JobSpec(tasks=2, mgpu=4000, cpu_mcores=20, preemptible=True, duration_ms=50, datasets=("d",))
SMALL = JobSpec(mgpu=500, duration_ms=10)
LOG: list[tuple[int, ev.Event]] = [
    (0, up("s")),
    (0, up("t", rack="l")),
    (0, up("u", "far")),
    (1, ev.Submitted("big", BIG)),
    (1, ev.Placed("big", 1, "r", "c", (share("s", 1, 0, 1, 2, 3), share("t", 1, 0, 1, 2, 3)))),
    (2, ev.Started("big", 1)),
    (5, ev.Submitted("small", SMALL)),
    (5, ev.Placed("small", 1, "r", "c", (share("s", 1, 0, milli=500),), victims=("big",))),
    (5, ev.StopAsked("big", 1, "for small")),
    (8, ev.Stopped("big", 1, 4, 2)),
    (8, ev.Started("small", 1)),
    (18, ev.Finished("small", 1)),
    (18, ev.Placed("big", 2, "r", "c", (share("s", 2, *range(8)),))),
    (19, ev.Started("big", 2)),
    (65, ev.Finished("big", 2)),
]
DATA = {"d": ("r",)}


def found(log: list[tuple[int, ev.Event]], **options: Any) -> list[str]:
    return [
        str(one) for one in check_log(stored(*log), **{"replicas": DATA, "durations": True, "all_end": True, **options})
    ]


def test_a_sound_log() -> None:
    assert found(LOG) == []


def at(place: int, event: ev.Event, ms: int | None = None) -> list[tuple[int, ev.Event]]:
    """The log with another event at a place."""
    return [*LOG[:place], (LOG[place][0] if ms is None else ms, event), *LOG[place + 1 :]]


def then(place: int, event: ev.Event) -> list[tuple[int, ev.Event]]:
    """The log with one more event after a place."""
    return [*LOG[: place + 1], (LOG[place][0], event), *LOG[place + 1 :]]


def placed(place: int, **changed: Any) -> list[tuple[int, ev.Event]]:
    event = LOG[place][1]
    assert isinstance(event, ev.Placed)
    return at(place, replace(event, **changed))


def spec(place: int, **changed: Any) -> list[tuple[int, ev.Event]]:
    event = LOG[place][1]
    assert isinstance(event, ev.Submitted)
    return at(place, replace(event, spec=replace(event.spec, **changed)))


BROKEN: dict[str, tuple[list[tuple[int, ev.Event]], str]] = {
    "time": (at(9, LOG[9][1], ms=4), "event 10, order: its time 4 ms lies before 5 ms"),
    "twice submitted": (then(3, LOG[3][1]), "job: job big was submitted before"),
    "never submitted": (then(3, ev.Placed("x", 1, "r", "c", ())), "job: job x was never submitted"),
    "after its end": (then(14, ev.Failed("big", 2)), "job: job big has ended"),
    "placed twice": (then(5, LOG[4][1]), "job: job big is placed and is running"),
    "started twice": (then(5, LOG[5][1]), "job: job big runs already"),
    "holds nothing": (then(3, ev.Finished("big", 1)), "job: job big holds nothing; Finished cannot happen"),
    "bound late": (then(5, ev.Bound("big", "r")), "job: job big is bound and is running"),
    "attempt skipped": (placed(12, attempt=3), "attempt: attempt 3 of job big follows attempt 1"),
    "old attempt": (at(14, ev.Finished("big", 1)), "attempt: Finished of attempt 1; job big has 2"),
    "unknown server": (placed(12, shares=(share("v", 2),)), "server: job big is placed on v, which is not in service"),
    "up twice": (then(0, up("s")), "server: server s is in service already"),
    "down twice": (then(0, ev.ServerDown("x")), "server: server x is not in service"),
    "down": (then(11, ev.ServerDown("s")), "server: job big is placed on s, which is not in service"),
    "down at start": (then(12, ev.ServerDown("s")), "server: job big starts on s, which is out of service"),
    "too few tasks": (placed(4, shares=(share("s", 1),)), "gang: job big has 2 tasks; [1] are placed"),
    "no task": (placed(12, shares=(share("s", 2), share("t", 0))), "gang: job big has 2 tasks; [2, 0] are placed"),
    "server twice": (placed(12, shares=(share("s", 1), share("s", 1))), "gang: job big has a server twice"),
    "level server": (spec(3, within="server"), "level: job big has to stay within a server"),
    "level rack": (spec(3, within="rack"), "level: job big has to stay within a rack"),
    "region": (placed(7, shares=(share("u", 1),)), "region: u is not in cluster c of region r"),
    "bound": (then(3, ev.Bound("big", "far")), "region: job big is bound to far, not r"),
    "type": (spec(3, gpu_types={"a100": 4000}), "gpu: job big does not run on h100"),
    "GPUs of tasks": (placed(12, shares=(share("s", 2, 0, 1),)), "gpu: GPUs of job big on s are not those of 2 tasks"),
    "GPU twice": (placed(12, shares=(Share("s", 2, {0: 5000, 1: 3000}),)), "gpu: GPU 0 of s: 5000"),
    "no such GPU": (placed(12, shares=(share("s", 2, *range(1, 9)),)), "gpu: GPU 8 of s: 1000 milli-GPUs are held"),
    "cores": (spec(3, cpu_mcores=40), "capacity: 80 millicores of s are claimed; it has 64"),
    "memory": (spec(3, memory_mib=400), "capacity: 800 MiB of s are claimed; it has 512"),
    "no data": ([*LOG[:4], (1, ev.ReplicaDropped("d", "r")), *LOG[4:]], "data: job big reads d, which is not in r"),
    "victim": (placed(7, victims=("small",)), "victim: job small stops for job small and is waiting"),
    "not preemptible": (spec(3, preemptible=False), "victim: job big stops for job small, but may not be stopped"),
    "too much work": (at(9, ev.Stopped("big", 1, 5, 2)), "work: job big ran for 6 ms; it cannot have done 5 ms of"),
    "negative work": (at(9, ev.Stopped("big", 1, -1, 2)), "work: job big ran for 6 ms; it cannot have done -1 ms"),
    "too early": (at(14, LOG[14][1], ms=64), "work: job big has finished after 49 of 50 ms of work"),
    "without a start": (then(12, ev.Finished("big", 2)), "work: job big has finished without a start"),
    "lost": (LOG[:-1], "the end of the log, lost: job big has not ended; it is running"),
}  # fmt: skip


@pytest.mark.parametrize(("log", "words"), BROKEN.values(), ids=list(BROKEN))
def test_a_broken_log(log: list[tuple[int, ev.Event]], words: str) -> None:
    assert words in "\n".join(found(log))


def test_a_gap() -> None:
    log = stored(*LOG)
    assert str(check_log([*log[:3], *log[4:]])[0]) == "event 5, order: it follows event 3"


def test_a_claim_beyond_capacity() -> None:
    log = [*LOG[:4], (1, ev.Submitted("more", BIG)), (1, ev.Placed("more", 1, "r", "c", (share("s", 2),))), *LOG[4:6]]
    assert "capacity: 12,000 milli-GPUs of s are claimed; it has 8,000" in "\n".join(found(log))


def test_servers_that_are_not_left_yet_are_held_not_claimed() -> None:
    early = [
        *LOG[:9],
        (6, ev.Submitted("b", replace(BIG, datasets=()))),
        (6, ev.Placed("b", 1, "r", "c", (share("t", 2),))),
        (7, ev.Started("b", 1)),
    ]
    assert "capacity: 12,000 milli-GPUs of t are held; it has 8,000" in "\n".join(found(early))
    assert "claimed" not in "\n".join(found(early[:-1]))


def test_data_that_comes() -> None:
    log = [*LOG[:3], (1, ev.CopyEnded("d", "r")), *LOG[3:]]
    assert found(log, replicas={}) == []
    partly = [*LOG[:3], (1, ev.CopyEnded("d", "r", whole=False)), *LOG[3:]]
    assert "data: job big reads d" in "\n".join(found(partly, replicas={}))
    assert found(LOG, replicas=None) == []


def test_jobs_of_tenants_with_a_quota_may_be_stopped() -> None:
    log = spec(3, preemptible=False, tenant="ads")
    assert found(log, limited=("ads",)) == []
    assert len(found(log, limited=("maps",))) == 1
    assert found([*log[:3], (1, ev.QuotaSet("ads", 1000)), *log[3:]]) == []


def test_cancelled_jobs() -> None:
    running = [
        *LOG[:6],
        (3, ev.Cancelled("big")),
        (3, ev.StopAsked("big", 1, "cancelled")),
        (4, ev.Stopped("big", 1, 2, 0)),
    ]
    assert found(running) == []
    waiting = [*LOG[:4], (2, ev.Cancelled("big"))]
    assert found(waiting) == []
    assert "job: job big has ended" in "\n".join(found([*waiting, LOG[4]]))


def test_ends_are_not_asked_for_unless_they_are() -> None:
    assert found(LOG[:-1], all_end=False) == []
    assert found(at(14, LOG[14][1], ms=64), durations=False) == []
