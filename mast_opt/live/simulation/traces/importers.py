"""Importers of traces of jobs. A further one is a module here and a line in ``_OWN``, or an entry point in the
group ``mast_opt.trace_importers``."""

from typing import Any

from mast_opt.core.plugins import Extensions
from mast_opt.live.simulation.traces.armada import ARMADA
from mast_opt.live.simulation.traces.gavel import GAVEL_TRACE
from mast_opt.live.simulation.traces.openb import OPENB
from mast_opt.live.simulation.traces.philly import PHILLY
from mast_opt.live.simulation.traces.slurm.importer import SACCT
from mast_opt.live.simulation.traces.swf import SWF
from mast_opt.planner.importers import IMPORTERS
from mast_opt.planner.importers.base import Importer

_OWN: dict[str, Importer[Any] | str] = {
    "armada": ARMADA,
    "gavel-trace": GAVEL_TRACE,
    "openb": OPENB,
    "philly": PHILLY,
    "sacct": SACCT,
    "swf": SWF,
}
TRACE_IMPORTERS: Extensions[Importer[Any]] = Extensions(
    "mast_opt.trace_importers", "importer of traces", _OWN, Importer, IMPORTERS.own
)
"""name → importer, as ``mast-opt import`` calls them; what they build is ``TraceTables``."""
