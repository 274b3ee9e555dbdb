"""Parameters of tetris (data placement): annealing, Gibbs sweeps, relaxation, sub-MIPs, and when each is used.

Sizes are counted in cells: reads times regions (``read_cells``), reads times links (``link_cells``), and options times
the regions where they may run (``option_cells``). Temperatures are in units of the mean cost of a workload.
"""

from dataclasses import dataclass
from typing import ClassVar

from mast_opt.problems.data_placement.tetris.annealing.params import CoolingParams, MultistartParams, OperatorParams
from mast_opt.problems.data_placement.tetris.gibbs.params import GibbsParams
from mast_opt.problems.data_placement.tetris.lagrangian.params import RelaxationParams, TreeCutParams
from mast_opt.problems.data_placement.tetris.lagrangian.spectral import SpectralParams
from mast_opt.problems.data_placement.tetris.multilevel.params import MultilevelParams
from mast_opt.problems.data_placement.tetris.plan_limits import PlanLimitParams
from mast_opt.problems.data_placement.tetris.sub_mip.params import (
    CompletionParams,
    NeighbourhoodParams,
    WorkloadsOnlyParams,
)
from mast_opt.problems.data_placement.tetris.workload_parts import PartsParams
from mast_opt.problems.search.params import Params, group


@dataclass(frozen=True)
class TetrisParams(Params):
    """Parameters of the solver ``tetris``."""

    cooling: ClassVar[CoolingParams] = CoolingParams()
    """Temperatures of the annealing."""
    operators: ClassVar[OperatorParams] = OperatorParams()
    """Proposals of the annealing."""
    parts: ClassVar[PartsParams] = PartsParams()
    """Splittable workloads in the search."""
    multistart: ClassVar[MultistartParams] = MultistartParams()
    """Small instances."""
    multilevel: ClassVar[MultilevelParams] = MultilevelParams()
    """One copy of each dataset."""
    gibbs: GibbsParams = group(GibbsParams(), "Large instances.")
    relaxation: RelaxationParams = group(RelaxationParams(), "The bound.")
    tree_cuts: ClassVar[TreeCutParams] = TreeCutParams()
    """Cutting planes of the bound."""
    spectral: ClassVar[SpectralParams] = SpectralParams()
    """The bound where plans are partitions."""
    neighbourhoods: NeighbourhoodParams = group(NeighbourhoodParams(), "Fix-and-optimise.")
    workloads_only: WorkloadsOnlyParams = group(WorkloadsOnlyParams(), "Lexicographic terms of work.")
    completion: CompletionParams = group(CompletionParams(), "What the search leaves open.")
    plan_limits: PlanLimitParams = group(PlanLimitParams(), "Hard limits on the whole plan.")
    reserve: ClassVar[float] = 0.04
    """Share of the time that is reserved for handing the plan over."""
    handover_s_per_cell: ClassVar[float] = 1e-7
    """Seconds for each read cell that are reserved too. What last pass, certificate and verifier take."""
    lexicographic_weight: ClassVar[float] = 1e3
    """Weight of the earlier terms, in the search for a later one. Caps keep their values; this is a price."""
