"""The objective terms of data placement and their default weights."""

from __future__ import annotations

from collections.abc import Mapping

TERMS: Mapping[str, float] = {
    "peak": 1.0,
    "overload": 10.0,
    "idle": 0.0,
    "remote": 5.0,
    "egress": 0.0,
    "copy": 0.5,
    "storage": 0.1,
    "moved_work": 0.0,
    "unserved": 1000.0,
}
"""Term → its weight where the instance states none. What each measures: ``docs/problems/data-placement.md``."""
