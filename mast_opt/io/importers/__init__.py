"""Public data in, problems out. A further importer is a module here and a line in ``IMPORTERS``.

importer       what an importer is: inputs, settings, a pure function
source_table   reading other people's CSV files with every fault named
georegions, openb, philly                 the sources
cloud_work, cloud_data, cloud_regions     an instance from all three
gpu_nodes, gpu_pods, gpu_load, gpu_fleet  a job-placement instance from machines, pods and jobs
gap            a job-placement instance from the generalised assignment problem
roadef         a task-reassignment instance in the format of the ROADEF/EURO challenge 2012
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.io.importers.base import Importer, Input, Setting
from mast_opt.io.importers.cloud_regions.instance import CLOUD_REGIONS
from mast_opt.io.importers.gap import GAP
from mast_opt.io.importers.gpu_fleet.instance import GPU_FLEET
from mast_opt.io.importers.roadef import ROADEF

IMPORTERS: Mapping[str, Importer[Any]] = {
    "cloud-regions": CLOUD_REGIONS,
    "gap": GAP,
    "gpu-fleet": GPU_FLEET,
    "roadef": ROADEF,
}
"""name → importer, as ``mast-opt import`` calls them."""


def importer_named(name: str) -> Importer[Any]:
    """The importer of that name. Raises UsageError, listing those that there are."""
    if name not in IMPORTERS:
        raise UsageError(f"there is no importer called {name!r}; expected one of: {', '.join(IMPORTERS)}")
    return IMPORTERS[name]


__all__ = ["IMPORTERS", "Importer", "Input", "Setting", "importer_named"]
