"""The objective terms of job placement and their default weights."""

from __future__ import annotations

from collections.abc import Mapping

TERMS: Mapping[str, float] = {
    "rejected": 1000.0,
    "preemption": 10.0,
    "balance": 1.0,
    "spread": 1.0,
    "remote": 10.0,
    "fragmentation": 0.1,
    "cost": 1.0,
}
"""Term → its weight where the instance states none. What each measures: ``docs/problems/job-placement.md``.

``cost`` weighs 1 because the term is 0 where there is no ``costs`` table.
"""
