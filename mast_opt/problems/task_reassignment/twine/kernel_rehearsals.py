"""Kernel compilation of twine: one round on a small instance."""

import numpy as np

from mast_opt.problems.search.interface import Rehearsal, SearchContext
from mast_opt.problems.task_reassignment.generate import FAMILIES
from mast_opt.problems.task_reassignment.twine.params import TwineParams
from mast_opt.problems.task_reassignment.twine.solver import twine


def rehearsals() -> tuple[Rehearsal, ...]:
    """One, whatever the problem: a single kernel contains the others."""
    return (Rehearsal("annealing", _anneal),)


def _anneal(tools: SearchContext) -> None:
    """Rehearse annealing in ``twine``."""
    family = FAMILIES["challenge"]
    problem = family.generate(np.random.default_rng(0), **{size: min(n, 6) for size, n in family.sizes.items()})
    twine(problem, tools, None, TwineParams())
