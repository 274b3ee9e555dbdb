"""What can be bought by the unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mast_opt.data_placement.analysis import instance_edits as edits
from mast_opt.data_placement.problem import DataPlacement
from mast_opt.kind.analysis_hooks import Resource


def _links(problem: DataPlacement) -> tuple[str, ...]:
    if problem.links is None:
        return ()
    ends = zip(problem.links.source.tolist(), problem.links.target.tolist())
    return tuple(f"{problem.regions[q]} → {problem.regions[r]}" for q, r in ends)


def _supplied(problem: DataPlacement) -> list[tuple[int, int]]:
    region, kind = np.nonzero(problem.supply_mgpu)
    return list(zip(region.tolist(), kind.tolist()))


def _gpu_places(problem: DataPlacement) -> tuple[str, ...]:
    return tuple(f"{problem.regions[r]} {problem.gpu_types[k]}" for r, k in _supplied(problem))


def _more_gpus(problem: DataPlacement, at: int, units: int) -> DataPlacement:
    supply = problem.supply_mgpu.copy()
    supply[_supplied(problem)[at]] += 1000 * units
    return replace(problem, supply_mgpu=supply)


def _limited(problem: DataPlacement) -> tuple[str, ...]:
    return tuple(problem.regions[r] for r in np.flatnonzero(problem.ingress_limited))


RESOURCES = (
    Resource("storage", "TB", lambda p: p.regions, lambda p, at, units: edits.bought_storage(p, {at: units})),
    Resource("cpu", "core", lambda p: p.regions, lambda p, at, units: edits.more_cores(p, {at: units})),
    Resource("gpus", "GPU", _gpu_places, _more_gpus),
    Resource("ingress", "TB a day", _limited, lambda p, at, units: edits.more_ingress(p, {at: units})),
    Resource("link", "TB a day", _links, lambda p, at, units: edits.more_link(p, {at: units})),
)
