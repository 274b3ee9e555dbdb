"""Strategy of exhaustive+repair (job placement): whether sub-MIPs are solved, and what limits them, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.problems.job_placement.exhaustive.params import ExhaustiveRepairParams
from mast_opt.problems.search.interface import StoppingCriteria
from mast_opt.problems.search.strategy import Strategy


@dataclass(frozen=True)
class ExhaustiveRepairStrategy(Strategy):
    """Decisions of exhaustive+repair on one instance."""

    sub_mips: bool
    """True if some clusters or jobs are solved exactly; False if the program is too large for that."""
    whole: bool
    """True if the whole program is solved before the rounds."""
    prices: bool
    """True if prices of capacity are computed, which prove a bound."""
    assignment: bool
    """True if every other round is a tabu search over single tasks."""
    sub_mip_nodes: int
    """Most nodes of one; at its greatest value there is no limit."""
    sub_mip_time_limit_s: float
    """Most seconds for one; 0 where rounds are counted, for no limit."""


def choose_strategy(
    pairs: int, assignment_cells: int | None, stop: StoppingCriteria, params: ExhaustiveRepairParams
) -> ExhaustiveRepairStrategy:
    """The strategy for an instance. Where rounds are counted, the clock must have no say, so nodes are limited and not
    seconds.

    Args:
        pairs: of a job and a server that it accepts, about the columns of the formulation.
        assignment_cells: jobs times servers of a generalised assignment problem; None if it is none.
    """
    counted, given = stop.iterations is not None, params.sub_mip
    sub_mips = pairs <= (params.sub_mip_columns_counted if counted else params.sub_mip_columns)
    return ExhaustiveRepairStrategy(
        sub_mips=sub_mips,
        whole=sub_mips and pairs <= params.whole_columns and params.whole_share > 0,
        prices=sub_mips and pairs <= params.whole_columns,
        assignment=assignment_cells is not None and assignment_cells <= params.assignment.cells,
        sub_mip_nodes=min(given.node_limit, params.sub_mip_nodes) if counted else given.node_limit,
        sub_mip_time_limit_s=0.0 if counted else given.time_limit_s,
    )
