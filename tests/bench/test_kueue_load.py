"""Waits under the load of Kueue's performance test are those of its rules, replayed by themselves without latency."""

from __future__ import annotations

from benchmarks.kueue_load import LOADS, coming, run


def test_a_cohort_waits_as_the_rules_say() -> None:
    found = run(LOADS["baseline"]._replace(cohorts=1))
    waits = {kind: [round(wait, 3) for wait in both] for kind, both in found["waits_s"].items()}
    assert waits == {"large": [0.0, 0.0], "medium": [38.673, 41.025], "small": [54.225, 54.229]}
    assert found["stops"] == {"large": 0, "medium": 1176, "small": 6}
    assert (found["jobs"], found["end_ms"]) == (3000, 76_800)


def test_loads_have_the_size_that_is_published() -> None:
    for name, jobs, cpu_s in (("baseline", 15_000, 7920.0), ("large-scale", 50_000, 8050.0)):
        load, alone = LOADS[name], LOADS[name]._replace(cohorts=1)
        assert len(coming(load)) == jobs
        streams = alone.streams.values()
        assert alone.queues * sum(one.each * one.run_ms * one.cpu for one in streams) / 1000 == cpu_s
