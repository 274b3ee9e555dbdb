"""Lateness of a migration: by how much its steps take longer than the copies may, and what would mend it."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from mast_opt.problems.data_placement.migration.planner import Steps, steps
from mast_opt.problems.data_placement.plan import Plan
from mast_opt.problems.data_placement.problem import DataPlacement, Ints
from mast_opt.problems.data_placement.wording import days, tb


def lateness(problem: DataPlacement, plan: Plan, found: Steps) -> str:
    """A sentence on steps that take longer than the instance's ``days``, with what brings them within; else empty.

    What would mend it is tried: each change is one with which the steps to the same plan take no longer than allowed.
    """
    allowed = problem.days
    if found.days <= allowed or found.blocked or found.waiting:
        return ""
    mends = [words for words, easier in _eased(problem, plan, found.days) if steps(easier, plan).days <= allowed]
    advice = ", or ".join([f"'days' = {found.days:,}", *mends])
    late = f"the steps take {days(Fraction(found.days))}, {days(found.days - allowed)} more than the instance states"
    return f"{late}; {advice}{',' if mends else ''} would do"


def _eased(p: DataPlacement, plan: Plan, needed: int) -> Iterator[tuple[str, DataPlacement]]:
    """Instances in which less is in the way of the steps, each with its words: more bandwidth, or more room."""
    factor = Fraction(needed) / p.days

    def times(mb: Ints) -> Ints:
        """Rates that are the factor times as much."""
        return np.array([min(int(one * factor), np.iinfo(np.int64).max) for one in mb.tolist()], np.int64)

    links = p.links and replace(p.links, capacity_mb_per_day=times(p.links.capacity_mb_per_day))
    rate = times(p.regions.ingress_mb_per_day)
    wide = replace(p, regions=replace(p.regions, ingress_mb_per_day=rate), links=links)
    yield f"{float(factor):.3g} times the ingress{'' if links is None else ' and links'}", wide
    both = (p.datasets.stored | plan.place).T @ p.datasets.size_mb
    lacking = np.maximum(both - p.usable_storage_mb, 0)
    if lacking.any():
        storage = p.regions.storage_mb + lacking * 1000 // np.maximum(1000 - p.regions.headroom_milli, 1) + 1
        names = [f"{tb(mb)} in {p.regions.labels[r]}" for r, mb in enumerate(lacking.tolist()) if mb]
        yield f"more room meanwhile ({', '.join(names)})", replace(p, regions=replace(p.regions, storage_mb=storage))
