"""Data sections for GNU MathProg: labels that GLPK prints as they are, and the lines of a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, count
from typing import Any

from numpy.typing import NDArray

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


def section(head: str, *columns: NDArray[Any]) -> Iterator[str]:
    """A statement of the data section: its head, and a line for each row."""
    yield f"{head} :="
    quoted = [map(repr, column.tolist()) for column in columns]
    yield from map(" ".join, zip(*quoted))
    yield ";"
