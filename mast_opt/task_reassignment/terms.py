"""The objective terms of task reassignment and their default weights."""

from __future__ import annotations

from collections.abc import Mapping

TERMS: Mapping[str, float] = {
    "load": 1.0,
    "balance": 1.0,
    "process_move": 1.0,
    "service_move": 10.0,
    "machine_move": 100.0,
}
"""Term → its weight where the instance states none. What each measures: ``docs/problems/task-reassignment.md``."""
