"""Generated resource-allocation instances, by family.

A family, its sizes and the state of a NumPy ``Generator`` determine the instance, array by array.

    standard    jobs on GPUs of several types, max-min fair
    packing     the same with pairs of jobs that share a GPU
    features    every optional table and column, floors, one of the policies at random; for tests
"""

from __future__ import annotations

from mast_opt.problems.kind.family import Family
from mast_opt.problems.resource_allocation.generate.families import features, packing, standard

FAMILIES = {
    "standard": Family(standard, {"jobs": 128, "types": 3}, "jobs on GPUs of several types, max-min fair"),
    "packing": Family(packing, {"jobs": 48, "types": 3}, "standard, with pairs of jobs that share a GPU"),
    "features": Family(features, {"jobs": 8, "types": 2}, "every optional table and column at once; for tests"),
}

__all__ = ["FAMILIES", "features", "packing", "standard"]
