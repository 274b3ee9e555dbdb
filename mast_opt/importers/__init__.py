"""Public data in, problems out. A further importer is a module here and a line in ``IMPORTERS``.

base           what an importer is: inputs, settings, a pure function
traces         other people's files, with every fault named
cloud_regions  an instance of data placement from regions, machines and jobs
gpu_fleet      an instance of job placement from machines, pods and jobs
gap            an instance of job placement from the generalised assignment problem
gavel          an instance of resource allocation from measured throughputs and a trace
schedulers     instances of resource allocation from what other schedulers take as input
mapped         an instance of any kind from files, databases and dumps of cluster tools, by a mapping file
roadef         an instance of task reassignment in the format of the ROADEF/EURO challenge 2012
"""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from mast_opt.core.arguments import a_path, a_text, a_whole, checked
from mast_opt.core.errors import UsageError
from mast_opt.importers.base import Importer, Input, Setting
from mast_opt.importers.cloud_regions.instance import CLOUD_REGIONS
from mast_opt.importers.gap import GAP
from mast_opt.importers.gavel import GAVEL
from mast_opt.importers.gpu_fleet.instance import GPU_FLEET
from mast_opt.importers.mapped.instance import TABLES
from mast_opt.importers.roadef import ROADEF
from mast_opt.importers.schedulers import SCHEDULERS

IMPORTERS: Mapping[str, Importer[Any]] = {
    "cloud-regions": CLOUD_REGIONS,
    "gap": GAP,
    "gavel": GAVEL,
    "gpu-fleet": GPU_FLEET,
    "roadef": ROADEF,
    "tables": TABLES,
    **SCHEDULERS,
}
"""name → importer, as ``mast-opt import`` calls them."""


def importer_named(name: str) -> Importer[Any]:
    """The importer of that name. Raises UsageError, listing those that there are."""
    if name not in IMPORTERS:
        raise UsageError(f"there is no importer called {name!r}; expected one of: {', '.join(IMPORTERS)}")
    return IMPORTERS[name]


@checked(importer=a_text, seed=a_whole(0))
def import_instance(importer: str, *paths: str | PathLike[str], seed: int = 0, **settings: int | float | str) -> Any:  # noqa: ANN401 - the importer says of which kind
    """A problem from public data; the same files, settings and seed give the same problem.

    Args:
        importer: such as ``cloud-regions``, ``gap`` or ``gavel``; ``mast-opt import --help`` lists all of them with
            their inputs and settings.
        paths: its inputs, in order.
        seed: of everything that the data lack.
        settings: such as ``regions=20``; the importer's defaults where they are not given.

    Raises:
        UsageError: there is no such importer or setting, a value that it cannot have, or too few or too many paths.
        SourceError: a file is missing or not what it should be; lists every fault.
    """
    for place, path in enumerate(paths):
        a_path(f"paths[{place}]", path)
    given = {name: str(value) for name, value in settings.items()}
    return importer_named(importer).run([Path(path) for path in paths], given, seed)


__all__ = ["IMPORTERS", "Importer", "Input", "Setting", "import_instance", "importer_named"]
