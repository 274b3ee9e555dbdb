"""Time slices of the compiled annealing loop of tetris, so that limits and interrupts are noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from mast_opt.problems.data_placement.tetris.annealing.kernel import Proposals, anneal
from mast_opt.problems.data_placement.tetris.annealing.params import OperatorParams
from mast_opt.problems.data_placement.tetris.decomposition import Subproblem
from mast_opt.problems.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.problems.data_placement.tetris.operators.workspace import Workspace, workspace_for


def proposals_of(params: OperatorParams, compound: bool, guided: bool = False, swaps: bool = True) -> Proposals:
    """Mix of changes for the kernel: with compound moves or without, with their swaps or without, guided or not.

    A share of 0 switches an operator off.
    """
    closures = (params.compound_move, params.compound_swap if swaps else 0.0) if compound else (0.0, 0.0)
    amounts = np.cumsum([params.move, params.guided_twins if guided else params.twins, params.swap, *closures])
    return Proposals(
        np.asarray(amounts / amounts[-1], np.float64),
        guided,
        params.surrogate_share,
        params.holder_share,
        params.window,
        params.partners,
    )


def annealing_workspace(a: TetrisArrays, params: OperatorParams) -> Workspace:
    """Space for one thread of the annealing."""
    return workspace_for(a, params.closure_workloads, params.closure_datasets, params.partners)


class KernelRuns:
    """The annealing of one problem by several threads, each with scratch space of its own.

    Args:
        refuse: may work be left out?
        small: is the instance small enough for multistart annealing? Datasets move with their closures then, even where
            remote reads are allowed.
    """

    def __init__(
        self, a: TetrisArrays, refuse: bool, threads: int, params: OperatorParams, small: bool = False
    ) -> None:
        self.refuse, self.params = refuse, params
        self._scratch: list[Workspace] = [annealing_workspace(a, params) for _ in range(threads)]
        self._reads_have_a_price = a.remote_reads and a.remote_price > 0
        self.mix = proposals_of(params, compound=small or not a.remote_reads, swaps=not a.remote_reads)

    def guide(self) -> None:
        """Propose changes where the data is from now on, unless remote reads cost nothing or are forbidden."""
        if self._reads_have_a_price:
            self.mix = proposals_of(self.params, compound=False, guided=True)

    def run(
        self, thread: int, part: Subproblem, steps: int, falls: Iterable[tuple[float, float]], over: Callable[[], bool]
    ) -> float:
        """Anneal with ``steps`` changes for every fall of the temperature, until ``over``; returns the change of the
        cost."""
        change = 0.0
        for hot, cold in falls:
            change += anneal(part, steps, hot, cold, self.refuse, self._scratch[thread], self.mix)
            if over():
                break
        return change
