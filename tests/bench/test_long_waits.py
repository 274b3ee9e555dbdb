"""Waits of gangs: the month has the load that is asked for, and the page has the tables of the committed runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.long_waits import PAGE, PARTITIONS, limits_of, measure, month, page_tables, read, trace_of
from benchmarks.study_pages import with_tables

ROWS = Path(__file__).parents[2] / "benchmarks" / "data" / "long-waits.jsonl"


def test_the_page_has_the_tables_of_the_runs() -> None:
    page = PAGE.read_text(encoding="utf-8")
    tables = page_tables(read(ROWS))
    assert page == with_tables(page, tables)
    assert all(f"<!-- table: {name} -->\n{make()}\n<!-- end -->" in page for name, make in tables.items())


def test_the_aims_are_met_in_the_committed_runs() -> None:
    rows = {(row["policy"], row["limits"], row.get("seed"), row.get("region")): row for row in read(ROWS)}
    small, ratios = list[float](), list[float]()
    for seed in range(1, 7):
        fifo, before = (rows[policy, "none", seed, None] for policy in ("fifo", "pass"))
        after = rows["reserve", "round", seed, None]
        ratios.append(after["above 16"]["max_h"] / fifo["above 16"]["max_h"])
        assert after["used"] >= before["used"], seed
        assert after["ended"] == 0
        small.append(after["1-7"]["mean_h"] - before["1-7"]["mean_h"])
    assert sum(small) / len(small) <= 2.5
    assert sum(ratios) / len(ratios) <= 0.55
    for row in rows.values():
        if row["case"] == "philly" and row["policy"] == "reserve" and "above 16" in row:
            assert row["above 16"]["max_h"] <= 1.2 * rows["fifo", "none", None, row["region"]]["above 16"]["max_h"]


def test_the_month_has_its_load() -> None:
    jobs, servers = month(1, 0.95)
    assert sum(server.gpus for server in servers) == 192
    for region, (_, count, _) in PARTITIONS.items():
        own = [job for job in jobs if job[4] == region]
        work = sum(tasks * gpus * duration for _, tasks, gpus, duration, _ in own)
        assert work / (count * 8 * (own[-1][0] - own[0][0])) == pytest.approx(0.95, rel=1e-3)
    for kind in ("exact", "x2", "x5", "round", "half"):
        pairs = zip(limits_of([job[3] for job in jobs], kind, 1), jobs, strict=True)
        assert all(limit == -1 or limit >= job[3] for limit, job in pairs)


def test_what_is_measured() -> None:
    """Two servers are full until 10 s; a gang of both comes at 1 s, and a short job at 2 s passes it."""
    _, servers = month(1, 0.95)
    both = tuple(server for server in servers if server.region == "batch")[:2]
    jobs = [(0, 2, 4, 10_000, "batch"), (1000, 2, 8, 10_000, "batch"), (2000, 1, 2, 5000, "batch")]
    found = {
        policy: measure(trace_of("t", jobs, both, [10_000, 10_000, 5000]), policy) for policy in ("fifo", "reserve")
    }
    hours = {policy: (row["16"]["max_h"], row["1-7"]["max_h"]) for policy, row in found.items()}
    assert hours["fifo"] == pytest.approx((9 / 3600, 18 / 3600))
    assert hours["reserve"] == pytest.approx((9 / 3600, 0))
    assert found["reserve"]["promised"] == 1
    assert json.dumps(found)
