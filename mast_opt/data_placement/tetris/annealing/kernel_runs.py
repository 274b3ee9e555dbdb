"""Time slices of the compiled annealing loop of tetris, so that limits and interrupts are noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from mast_opt.data_placement.tetris.annealing.kernel import anneal
from mast_opt.data_placement.tetris.decomposition import Subproblem
from mast_opt.data_placement.tetris.instance_arrays import TetrisArrays
from mast_opt.data_placement.tetris.operators.workspace import Workspace, workspace_for
from mast_opt.data_placement.tetris.params import operator_weights, shares_for

STEPS = 20_000
"""Changes of a slice, where nothing is known of the machine or may be."""


class KernelRuns:
    """The annealing of one problem by several threads, each with scratch space of its own.

    Args:
        refuse: may work be left out?
    """

    def __init__(self, a: TetrisArrays, refuse: bool, threads: int) -> None:
        self.refuse = refuse
        self._scratch: list[Workspace] = [workspace_for(a) for _ in range(threads)]
        self._reads_have_a_price = a.remote_reads and a.remote_price > 0
        self.mix = operator_weights(shares_for(a.remote_reads))

    def guide(self) -> None:
        """From now on, propose changes where the data is, unless remote reads cost nothing or are forbidden."""
        if self._reads_have_a_price:
            self.mix = operator_weights(shares_for(remote_reads=True, guided=True), guided=True)

    def run(
        self, thread: int, part: Subproblem, steps: int, falls: Iterable[tuple[float, float]], over: Callable[[], bool]
    ) -> float:
        """So many changes for every fall of the temperature, until it is ``over``; returns what they changed in the
        cost."""
        change = 0.0
        for hot, cold in falls:
            change += anneal(part, steps, hot, cold, self.refuse, self._scratch[thread], self.mix)
            if over():
                break
        return change
