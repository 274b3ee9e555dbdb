"""A task-reassignment plan: a machine for every process."""

from __future__ import annotations

from dataclasses import dataclass

from mast_opt.task_reassignment.problem import Ints


@dataclass(frozen=True, eq=False)
class Plan:
    """The decisions."""

    machine: Ints
    """[P] the machine that runs each process after the plan."""

    def __post_init__(self) -> None:
        self.machine.setflags(write=False)
