"""Importers of traces of jobs. A further one is a module here and a line in ``TRACE_IMPORTERS``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mast_opt.live.simulation.traces.gavel import GAVEL_TRACE
from mast_opt.live.simulation.traces.openb import OPENB
from mast_opt.live.simulation.traces.philly import PHILLY
from mast_opt.live.simulation.traces.slurm.importer import SACCT
from mast_opt.live.simulation.traces.swf import SWF
from mast_opt.planner.importers.base import Importer

TRACE_IMPORTERS: Mapping[str, Importer[Any]] = {
    "gavel-trace": GAVEL_TRACE,
    "openb": OPENB,
    "philly": PHILLY,
    "sacct": SACCT,
    "swf": SWF,
}
"""name → importer, as ``mast-opt import`` calls them; what they build is ``TraceTables``."""
