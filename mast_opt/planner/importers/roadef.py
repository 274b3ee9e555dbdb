"""A task-reassignment instance from two files of the ROADEF/EURO challenge 2012."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mast_opt.core.errors import InstanceError, SourceError
from mast_opt.planner.importers.base import Importer, Input, setting
from mast_opt.problems.task_reassignment import TaskReassignment
from mast_opt.problems.task_reassignment.tables.roadef import read


@dataclass(frozen=True)
class Settings:
    """The knobs of the importer."""

    name: str = setting("", "name of the instance; empty = that of the model file")


def build(paths: Sequence[Path], settings: Settings, rng: np.random.Generator) -> TaskReassignment:
    """The task-reassignment instance from files of ROADEF; nothing in it is drawn. Raises InputError for a file that
    cannot be opened, else SourceError.
    """
    model, assignment = paths
    try:
        problem = read(model, assignment)
    except InstanceError as error:
        raise SourceError(error.faults) from error
    return replace(problem, name=settings.name) if settings.name else problem


ROADEF = Importer(
    kind=TaskReassignment.kind,
    help="the machine reassignment problem of the ROADEF/EURO challenge 2012, in the challenge's own text format",
    inputs=(
        Input("model", "the model file, plain or gzipped"),
        Input("assignment", "the machine of each process today, plain or gzipped"),
    ),
    settings_type=Settings,
    build=build,
)
