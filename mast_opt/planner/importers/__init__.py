"""Public data in, problems out. A further importer is a module and a line in ``_PLACES``, or an entry
point in the group ``mast_opt.importers`` (``docs/how-to/plug-ins.md``).

base           what an importer is: inputs, settings, a pure function
traces         other people's files, with every fault named
cloud_regions  an instance of data placement from regions, machines and jobs
gpu_fleet      an instance of job placement from machines, pods and jobs
gap            an instance of job placement from the generalised assignment problem
mapped         an instance of any kind from files, databases and dumps of cluster tools, by a mapping file
roadef         an instance of task reassignment in the format of the ROADEF/EURO challenge 2012
"""

from os import PathLike
from pathlib import Path
from typing import Any

from mast_opt.core.arguments import a_path, a_text, a_whole, checked
from mast_opt.core.plugins import Extensions
from mast_opt.planner.importers.base import Importer, Input, Setting

_HERE = "mast_opt.planner.importers"
_LIVE = "mast_opt.live.importers"
_PLACES = {
    "cloud-regions": f"{_HERE}.cloud_regions.instance:CLOUD_REGIONS",
    "gap": f"{_HERE}.gap:GAP",
    "gavel": f"{_LIVE}.gavel:GAVEL",
    "gpu-fleet": f"{_HERE}.gpu_fleet.instance:GPU_FLEET",
    "roadef": f"{_HERE}.roadef:ROADEF",
    "tables": f"{_HERE}.mapped.instance:TABLES",
}


IMPORTERS: Extensions[Importer[Any]] = Extensions("mast_opt.importers", "importer", _PLACES, Importer)
"""name → importer, as ``mast-opt import`` calls them."""


def importer_named(name: str) -> Importer[Any]:
    """The importer of that name.

    Raises:
        UsageError: there is none; lists those that there are.
        PluginError: it is another package's, and cannot be loaded.
    """
    return IMPORTERS.named(name)


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
    chosen = importer_named(importer)
    with IMPORTERS.blaming(importer):
        return chosen.run([Path(path) for path in paths], given, seed)


__all__ = ["IMPORTERS", "Importer", "Input", "Setting", "import_instance", "importer_named"]
