"""Options of the commands that solve: ``--time-limit``, ``--gap``, ``--seed`` and ``--threads``.

Annotations are evaluated here, since the parser looks those of inherited fields up in the module of the subclass.
"""

import threading
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from mast_opt.core.solve_limits import SolveLimits, TimeLimits


def seconds_for(words: str) -> Parameter:
    """The option ``--time-limit``: what the seconds are for, in words."""
    return Parameter(help=words, validator=Number(gt=0))


def gap_of(words: str) -> Parameter:
    """The option ``--gap``: what is within it, in words."""
    return Parameter(help=words, validator=Number(gte=0))


Threads = Parameter(help="Of each solve; left to the solver unless stated.", validator=Number(gte=1))


@Parameter(name="*")
@dataclass(frozen=True)
class TimeOptions:
    """Options of a command that answers a question by solves; a subclass states those that differ in one command."""

    time_limit: Annotated[float | None, seconds_for("Seconds for each solve.")] = None
    threads: Annotated[int | None, Threads] = None

    def keywords(self, cancel: threading.Event) -> TimeLimits:
        """Keywords for a function that solves."""
        return {"time_limit_s": self.time_limit, "threads": self.threads, "cancel": cancel}


@Parameter(name="*")
@dataclass(frozen=True)
class SolveOptions(TimeOptions):
    """Options of a command that hands an instance to a solver."""

    gap: Annotated[float, gap_of("Relative gap of each solve.")] = 1e-4
    seed: Annotated[int, Parameter(help="Seed for all random choices.", validator=Number(gte=0))] = 0

    def keywords(self, cancel: threading.Event) -> SolveLimits:
        """Keywords for a function that solves."""
        return {**super().keywords(cancel), "gap": self.gap, "seed": self.seed}
