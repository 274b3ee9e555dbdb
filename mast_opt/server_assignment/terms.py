"""The objective terms of server assignment and their default weights."""

from __future__ import annotations

from collections.abc import Mapping

TERMS: Mapping[str, float] = {
    "shortfall": 1000.0,
    "moves_in_use": 10.0,
    "moves_idle": 1.0,
    "spread": 1.0,
    "buffer": 1.0,
    "affinity": 1.0,
    "use": 0.1,
    "repair": 100.0,
}
"""Term → its weight where the instance states none. What each measures: ``docs/problems/server-assignment.md``."""
