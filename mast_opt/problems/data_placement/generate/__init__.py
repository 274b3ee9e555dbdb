"""Generated data-placement instances, by family.

The contract: a family, its sizes and the state of a NumPy ``Generator`` over PCG64 (``np.random.default_rng(seed)``)
determine the instance, array by array. NumPy keeps PCG64's bits for good and may change what a distribution makes of
them in a new release; a test holds the figures that this code gave when it was written.

    standard, variants, features, published, organisation    the families
    distributions, teams, blank                              what they are made of
"""

from collections.abc import Callable

from mast_opt.problems.data_placement.generate.features import features
from mast_opt.problems.data_placement.generate.organisation import organisation
from mast_opt.problems.data_placement.generate.published import published
from mast_opt.problems.data_placement.generate.standard import standard
from mast_opt.problems.data_placement.generate.variants import (
    hot_dataset,
    lexicographic,
    links,
    many_small_regions,
    tight_storage,
    weakly_coupled,
)
from mast_opt.problems.data_placement.problem import DataPlacement
from mast_opt.problems.kind.family import Family


def _family(
    make: Callable[..., DataPlacement], datasets: int, workloads: int, regions: int, help: str
) -> Family[DataPlacement]:
    """Family of generated data-placement instances."""
    return Family(make, {"datasets": datasets, "workloads": workloads, "regions": regions}, help)


FAMILIES = {
    "standard": _family(standard, 200, 300, 10, "many readers per dataset; the family of the benchmarks"),
    "weakly-coupled": _family(weakly_coupled, 200, 200, 10, "one copy, one or two datasets per workload"),
    "many-small-regions": _family(many_small_regions, 300, 450, 40, "standard in many regions with one GPU type each"),
    "hot-dataset": _family(hot_dataset, 200, 300, 10, "standard with one large dataset that 60% of the work reads"),
    "tight-storage": _family(tight_storage, 200, 300, 10, "standard with storage for 1.1 copies of everything"),
    "links": _family(links, 60, 90, 6, "standard with a priced network that binds"),
    "lexicographic": _family(lexicographic, 100, 150, 8, "standard with terms minimised one after another"),
    "published": _family(published, 1000, 2000, 12, "the published skew of jobs, tiers and regions"),
    "organisation": Family(
        organisation,
        {"datasets": 1000, "workloads": 5000, "regions": 12, "storage_percent": 225, "first_time_percent": 70},
        "teams that read mostly their own data, first-time work as forecasts",
        most={"first_time_percent": 95},
        least={"storage_percent": 100, "first_time_percent": 0},
    ),
    "features": _family(features, 20, 30, 4, "every optional table, column and rule at once; for tests"),
}
"""name → family. Every one takes datasets, workloads and regions."""

__all__ = ["FAMILIES", "standard"]
