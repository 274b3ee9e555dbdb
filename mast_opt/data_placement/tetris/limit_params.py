"""Parameters of hard limits on a whole plan, and the terms that are priced for each; imports no kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mast_opt.search.params import Params, parameter

PRICED: Mapping[str, tuple[str, ...]] = {
    "copied_tb": ("copy",),
    "copy": ("copy",),
    "new_replicas": ("copy",),
    "stored_tb": ("storage",),
    "storage": ("storage",),
    "remote_tb_per_day": ("remote",),
    "remote": ("remote",),
    "moved_work": ("moved_work",),
    "moved_workloads": ("moved_work",),
    "moves": ("copy", "moved_work"),
    "unserved": ("unserved",),
    "unserved_gpus": ("unserved",),
    "overload_gpus": ("overload",),
}
"""Limit → the terms whose weights are raised where a plan exceeds it."""


@dataclass(frozen=True)
class PlanLimitParams(Params):
    """Searches for a plan within hard limits of the whole plan."""

    searches: int = parameter(
        6,
        "Searches at most, each with an equal share of the time that is left.",
        "Set by hand: a factor of 8 twice, then halvings.",
        low=2,
    )
    first: float = parameter(
        0.05,
        "First price of a limit that is exceeded: this share of the objective for what the plan has of its term.",
        "Set by hand.",
        above=0,
    )
    factor: float = parameter(
        8.0, "By how much a price rises that was too low.", "Set by hand: three searches span a factor of 500.", above=1
    )
