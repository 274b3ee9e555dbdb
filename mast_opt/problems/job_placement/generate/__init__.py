"""Generated job-placement instances, by family.

A family, its sizes and the state of a NumPy ``Generator`` over PCG64 (``np.random.default_rng(seed)``) determine
the instance, array by array; a test holds the figures that this code gave when it was written.

    families           the families, and the jobs that wait in them
    fleets, blank      what they are made of
"""

from collections.abc import Callable

from mast_opt.problems.job_placement.generate.families import features, lexicographic, shared_gpus, standard, study
from mast_opt.problems.job_placement.problem import JobPlacement
from mast_opt.problems.kind.family import Family


def _family(make: Callable[..., JobPlacement], help: str, **sizes: int) -> Family[JobPlacement]:
    """Family of generated job-placement instances."""
    return Family(make, sizes, help, most={"fill_percent": 100, "parts_percent": 100}, least={"parts_percent": 0})


FAMILIES = {
    "standard": _family(
        standard,
        "a fleet that has run for a while, and a queue of jobs of every size",
        regions=4,
        clusters=3,
        servers=12,
        jobs=120,
        fill_percent=95,
        parts_percent=0,
    ),
    "study": _family(
        study,
        "pending jobs that ask for 110–150% of what can be admitted; optima can be proven",
        regions=3,
        clusters=2,
        servers=10,
        fill_percent=92,
    ),
    "shared-gpus": _family(
        shared_gpus,
        "fractions of a GPU, single GPUs and CPU-only work",
        regions=2,
        clusters=2,
        servers=6,
        jobs=120,
        fill_percent=90,
    ),
    "lexicographic": _family(
        lexicographic, "study with terms minimised one after another", regions=3, clusters=2, servers=5, fill_percent=92
    ),
    "features": _family(
        features,
        "every optional table, column and rule at once; for tests",
        regions=3,
        clusters=2,
        servers=3,
        jobs=24,
        fill_percent=85,
    ),
}
"""name → family."""
SIZES_HELP = (
    "--clusters are those of each region, --servers those of each cluster on average (0.5 to 1.5 times as many); "
    "--fill-percent of all GPUs are held by running jobs; --parts-percent of the jobs that take whole GPUs have a part "
    "of CPU servers too: 8 cores and 32 GiB for every two GPUs, anywhere in the region"
)

__all__ = ["FAMILIES", "SIZES_HELP"]
