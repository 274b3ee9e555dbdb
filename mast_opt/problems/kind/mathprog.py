"""GNU MathProg data sections, for every kind of problem: labels that GLPK prints as they are, and statements."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.units import MICRO
from mast_opt.problems.kind.problem_data import Entities, GroupedProblem

ProblemT = TypeVar("ProblemT", bound=GroupedProblem[Any])

LONGEST = 48
"""Characters of a symbol; a name made of four of them must fit GLPK's 255."""
_PLAIN = re.compile(rf"[A-Za-z_][A-Za-z0-9_.+-]{{0,{LONGEST - 1}}}")


def symbols(labels: Sequence[str], reserved: Iterable[str] = ()) -> tuple[str, ...]:
    """Distinct names, one a label, that GLPK prints as they are; labels that already are such names are kept."""
    plain = {label for label in labels if _PLAIN.fullmatch(label)} - set(reserved)
    taken = plain | set(reserved)
    names = []
    for position, label in enumerate(labels, start=1):
        name = label
        if label not in plain:
            stem = re.sub(r"[^A-Za-z0-9_.+-]", "_", label)[: LONGEST - 16]
            stem = stem if _PLAIN.fullmatch(stem) else f"_{stem}"
            others = (f"{stem}_{position}{'_' * more}" for more in count())
            name = next(name for name in chain([stem], others) if name not in taken)
            taken.add(name)
        names.append(name)
    return tuple(names)


def with_symbols(problem: ProblemT, axes: Mapping[str, Iterable[str]]) -> ProblemT:
    """The problem with the labels of its axes replaced by symbols.

    Args:
        axes: name of each axis, and symbols that its labels must not take.
    """
    return problem.relabelled({axis: symbols(problem.labels_of(axis), reserved) for axis, reserved in axes.items()})


def stated_sections(group: Entities, labels: NDArray[Any]) -> Iterator[Iterator[str]]:
    """The parameters of the columns that are declared with one, where they are not the default; prices are in USD."""
    for one in group.STATED:
        if one.dat:
            values = getattr(group, one.array.name)
            at = np.flatnonzero(values != (one.column.default or 0))
            shown = values[at] / MICRO if one.column.scale == MICRO else values[at]
            yield section(f"param {one.dat}", labels[at], shown)


def write_data(
    problem: GroupedProblem[Any],
    path: Path,
    model: str,
    axes: Mapping[str, Iterable[str]],
    sections: Callable[[Any], Iterable[Iterator[str]]],
) -> None:
    """Write the data section that, with the .mod, states this problem.

    Args:
        problem: of any kind, with a ``name``.
        path: of the file.
        model: name of the .mod, for the first line.
        axes: as of ``with_symbols``; what each symbol stands for is said in comments.
        sections: the statements for a problem whose labels are symbols.
    """
    printable = with_symbols(problem, axes)
    with path.open("w", encoding="ascii") as file:
        for line in chain(_about(problem, printable, model, axes), *sections(printable)):
            file.write(f"{line}\n")


def _about(
    problem: GroupedProblem[Any], printable: GroupedProblem[Any], model: str, axes: Iterable[str]
) -> Iterator[str]:
    """Head of a MathProg data section: what it is of, and labels that symbols stand for."""
    yield f"# {ascii(problem.name)[1:-1]}: data for {model}"
    for axis in axes:
        for label, symbol in zip(problem.labels_of(axis), printable.labels_of(axis)):
            if label != symbol:
                yield f"# {symbol} stands for {label!a} among the {axis}"
    yield "data;"


def section(head: str, *columns: NDArray[Any]) -> Iterator[str]:
    """A statement of the data section: its head, and a line for each row."""
    yield f"{head} :="
    quoted = [map(repr, column.tolist()) for column in columns]
    yield from map(" ".join, zip(*quoted))
    yield ";"
