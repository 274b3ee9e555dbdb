"""Kinds of work in a trace: the tables of speeds, and what follows for jobs that name a model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.live.loop.speeds import Speeds
from mast_opt.planner.io.faults import Faults
from mast_opt.problems.kind.problem_data import Ints
from mast_opt.problems.kind.schema import Tables


def speeds_of(tables: Tables) -> Speeds:
    """The speeds of a trace's models that checked tables hold."""
    return Speeds(
        _speeds(tables, "speeds", "model", "gpu_type"), _speeds(tables, "pair_speeds", "model", "other", "gpu_type")
    )


def _speeds(tables: Tables, table: str, *labels: str) -> dict[Any, int]:
    """(labels, tasks) → steps a second in millionths, from a table of a trace's speeds."""
    if not tables.rows(table):
        return {}
    axes = {column: tables.axes["gpu_type" if column == "gpu_type" else "model"] for column in labels}
    names = [[axes[column][at] for at in tables.get(table, column).tolist()] for column in labels]
    keys = zip(*names, tables.get(table, "tasks").tolist(), strict=True)
    return dict(zip(keys, tables.get(table, "steps_per_s").tolist(), strict=True))


def check_models(tables: Tables, faults: Faults) -> None:
    """Note jobs of which it is not clear how long they run, or whose model is not known to run anywhere."""
    table = "submissions"
    models, tasks = tables.get(table, "model"), tables.get(table, "tasks")
    named, counted = tables.has(table, "model"), tables.has(table, "steps")

    def wrong(column: str, mask: NDArray[np.bool_], expected: str) -> None:
        rows, values = np.flatnonzero(mask), tables.get(table, column)
        labels = tables.axes["model"] if column == "model" else None
        shown = (lambda n: values[rows[n]]) if labels is None else (lambda n: labels[values[rows[n]]])
        faults.cells(table, column, rows + 1, shown, expected)

    wrong("steps", counted & ~named, "no steps for a job without a model")
    wrong("steps", counted & named & tables.has(table, "duration_s"), "steps or duration_s, not both")
    speeds = speeds_of(tables)
    runs = np.array([name in speeds.runs for name in _pairs(tables, models, tasks)], np.bool_)
    wrong("model", named & ~runs, "a model of the table speeds, with a speed above 0 for as many tasks")


def _pairs(tables: Tables, models: Ints, tasks: Ints) -> list[tuple[str, int]]:
    """(model, tasks) of each row of a trace."""
    names = (*tables.axes["model"], "")
    return [(names[model], size) for model, size in zip(models.tolist(), tasks.tolist(), strict=True)]


def durations_of(models: Sequence[str], tasks: Ints, steps: Ints, duration_ms: Ints, speeds: Speeds) -> Ints:
    """[J] how long jobs run on their reference type; -1 where nobody knows. ``steps`` are -1 where there are none."""
    found = duration_ms.copy()
    for job in np.flatnonzero(steps >= 0).tolist():
        found[job] = speeds.duration_ms(models[job], int(tasks[job]), int(steps[job]))
    found.setflags(write=False)
    return found


def types_of(
    models: Sequence[str], tasks: Ints, mgpu: Ints, accepted: Mapping[int, Mapping[str, int]], speeds: Speeds
) -> dict[int, Mapping[str, int]]:
    """Job → GPU types on which it may run and milli-GPUs of a task on each, for jobs that may not run everywhere."""
    found = dict(accepted)
    for job, model in enumerate(models):
        if model:
            runs = speeds.runs[model, int(tasks[job])]
            given = accepted.get(job)
            found[job] = (
                dict.fromkeys(runs, int(mgpu[job]))
                if given is None
                else {kind: need for kind, need in given.items() if kind in runs}
            )
    return found
