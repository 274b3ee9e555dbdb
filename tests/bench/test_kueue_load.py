"""Waits under the load of Kueue's performance test are those of its rules, replayed by themselves without latency."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from benchmarks.kueue_load import LOADS, coming, run


@pytest.mark.parametrize(
    ("name", "rules", "jobs", "end_s"),
    [
        (
            "baseline",
            {"large": (0, 0, 0), "medium": (38.673, 41.025, 1176), "small": (54.225, 54.229, 6)},
            3000,
            76.8,
        ),
        ("large-scale", {"large": (0, 0, 0), "medium": (1.4, 1.664, 100), "small": (2.007, 2.211, 200)}, 5000, 4.65),
    ],
)
def test_a_cohort_waits_as_the_rules_say(
    name: str, rules: Mapping[str, tuple[float, float, int]], jobs: int, end_s: float
) -> None:
    """Mean wait until the first and the last start, and stops, of each class."""
    found = run(LOADS[name]._replace(cohorts=1))
    for kind, (first_s, last_s, stops) in rules.items():
        assert [round(wait, 3) for wait in found["waits_s"][kind]] == [first_s, last_s]
        assert found["stops"][kind] == stops
    assert (found["jobs"], found["end_ms"]) == (jobs, 1000 * end_s)


def test_loads_have_the_size_that_is_published() -> None:
    for name, jobs, cpu_s in (("baseline", 15_000, 7920.0), ("large-scale", 50_000, 8050.0)):
        load, alone = LOADS[name], LOADS[name]._replace(cohorts=1)
        assert len(coming(load)) == jobs
        streams = alone.streams.values()
        assert alone.queues * sum(one.each * one.run_ms * one.cpu for one in streams) / 1000 == cpu_s
