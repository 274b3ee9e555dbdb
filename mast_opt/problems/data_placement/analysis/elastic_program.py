"""Elastic program of data placement: every hard limit in words, as rows and columns, to be moved or given up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

import numpy as np

from mast_opt.core.wording import named
from mast_opt.problems.data_placement.analysis.capacity_limits import amounts
from mast_opt.problems.data_placement.analysis.elastic_view import View, names_at
from mast_opt.problems.data_placement.analysis.rule_limits import missing_types, rules
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.data_placement.wording import tb
from mast_opt.problems.kind.analysis_hooks import ElasticLimits, ElasticProgram
from mast_opt.problems.mip import Mip, frozen
from mast_opt.problems.mip.transforms import Extension, extended


def relief(problem: DataPlacement) -> ElasticProgram:
    """The program without the limits that close columns, and all limits."""
    formulation = base(_opened(problem))
    mip = _copies_apart(problem, formulation.mip)
    view = View(problem, mip)
    limits = tuple(one for one in (*amounts(view), *rules(view)) if one.count)
    return ElasticProgram(mip, limits, formulation.decode, lambda chosen: _story(problem, limits, chosen))


def _opened(p: DataPlacement) -> DataPlacement:
    """The instance in which every cell is open that some limit closes."""
    supply = p.regions.supply_mgpu.copy()
    supply[missing_types(p)] = 1
    closing = ("datasets.pinned", "datasets.forbidden", "datasets.residency", "workloads.pinned", "workloads.forbidden")
    none = {name: np.zeros_like(attrgetter(name)(p)) for name in closing}
    return p.with_columns({**none, "regions.supply_mgpu": supply, "remote_reads": True})


def _copies_apart(problem: DataPlacement, mip: Mip) -> Mip:
    """The program with each side of ``copies`` as a row of its own, so that each can move."""
    blocks = {block.name: block for block in (*mip.rows, *mip.columns)}
    fewest, place = blocks["copies"].ids, blocks["place"].ids
    upper = mip.row_upper.copy()
    upper[fewest] = np.inf
    row = len(upper) + np.arange(len(fewest))
    most = Extension(
        "copies_max",
        rows=len(fewest),
        row_upper=problem.datasets.copies_max,
        entries=[(np.repeat(row, place.shape[1]), place.ravel(), 1.0)],
    )
    return extended(replace(mip, row_upper=frozen(upper)), most)


def _story(
    problem: DataPlacement, limits: Sequence[ElasticLimits], chosen: Mapping[str, Sequence[int]]
) -> tuple[str, ...]:
    """Pins are described with the storage or ingress that they fill, everything else by sort."""
    p, left = problem, {name: list(members) for name, members in chosen.items()}
    by_name = {one.name: one for one in limits}
    pinned = np.nonzero(p.datasets.pinned)
    limited = np.flatnonzero(p.regions.ingress_limited)
    said = []
    for name, region_of in (("storage", np.arange(len(p.regions))), ("ingress", limited)):
        for member in list(left.get(name, ())):
            r = int(region_of[member])
            here = [m for m in left.get("pin", ()) if pinned[1][m] == r]
            if not here:
                continue
            data = pinned[0][here]
            arriving = data if name == "storage" else data[~p.datasets.stored[data, r]]
            size = tb(int(p.datasets.size_mb[arriving].sum()))
            words = f"{named('dataset', names_at(p.datasets.labels, data))} pinned there ({size})"
            said.append(f"{by_name[name].describe([member])} with {words}")
            left[name].remove(member)
            left["pin"] = [m for m in left["pin"] if m not in here]
    said += [by_name[name].describe(members) for name, members in left.items() if members]
    return tuple(said)
