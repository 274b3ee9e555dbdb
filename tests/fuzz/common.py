"""Parts shared by the targets of the fuzzer: their record, small instances, and the use of what was read."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mast_opt
from mast_opt.problems.registry import kind_of

CHEAP_ROWS = 100_000
"""Rows of all tables up to which an instance that was read is used as well."""
INSTANCES = Path(__file__).parents[2] / "instances"
SIZES: dict[str, dict[str, int]] = {
    "data-placement": {"datasets": 8, "workloads": 10, "regions": 3},
    "job-placement": {"regions": 2, "clusters": 2, "servers": 3, "jobs": 12},
    "server-assignment": {"servers": 24, "reservations": 4, "datacenters": 2},
    "task-reassignment": {"processes": 20, "machines": 6, "resources": 3},
    "resource-allocation": {"jobs": 6, "types": 2},
}
FAMILY = {"task-reassignment": "challenge"}
"""Family of the generated instance; ``features``, which has every table, for the others."""


@dataclass(frozen=True)
class Target:
    """A reader."""

    name: str
    make: Callable[[Path], None]
    """Writes sound files into an empty folder."""
    read: Callable[[Path], None]
    """Reads such a folder; may raise an error of mast-opt and nothing else."""
    weight: float = 1.0
    """How often it is drawn; less than 1 for one that takes long."""


@functools.cache
def generated(kind: str) -> Any:
    return mast_opt.generate(kind, FAMILY.get(kind, "features"), seed=1, **SIZES[kind])


@functools.cache
def stored(instance: str) -> Any:
    return mast_opt.read(INSTANCES / instance)


def use(problem: Any) -> None:
    """What is done with any instance before a solve; and it is written."""
    kind = kind_of(problem)
    kind.analysis.conflicts(problem)
    kind.analysis.current_state(problem)
    today = kind.analysis.current_plan(problem)
    if today is not None:
        kind.verification.verify(problem, today)
    with tempfile.TemporaryDirectory() as folder:
        mast_opt.write(problem, Path(folder) / "again")


def texts(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
