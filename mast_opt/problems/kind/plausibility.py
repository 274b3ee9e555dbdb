"""Plausibility checks of input, for every kind of problem: misspelt names, wrong units.

Each kind of problem puts its own checks together from these. A check says nothing unless it is nearly sure: a warning
that is often wrong is not read.
"""

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.input_warning import InputWarning
from mast_opt.core.wording import did_you_mean
from mast_opt.problems.kind.problem_data import Bools, Ints
from mast_opt.problems.kind.schema import Schema, Tables

LISTED = 5
"""Cells of one column with the same warning that are listed one by one; the rest are counted."""
FEWEST = 2
"""Ordinary values that a column needs before one can be called an outlier."""
ALIKE = 10.0
"""Factor within which they have to lie where there are no more than ``FEWEST``."""
FAR_FROM_MEDIAN = 250.0
"""Factor between an outlier and the median of its column, at least."""
DEVIATIONS = 4.0
"""Distance of an outlier from the median, in standard deviations of the logarithms, at least."""
LEAST_DEVIATION = 0.15
"""The standard deviation of decimal logarithms that equal values are taken to have."""
NORMAL = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
EMPTY_BETWEEN = 10.0
"""Factor without any value between outliers and the others."""
FITS_IN = 3.0
"""Factor by which a corrected outlier may lie outside of the others."""
SHORTEST = 5
"""Characters of a name from which on a name with one wrong character can be distinguished from another name."""


class Plausibility:
    """Collects the warnings on one instance's tables. Files are called by the names of their tables."""

    def __init__(self, schema: Schema, tables: Tables) -> None:
        self.schema, self.tables = schema, tables
        self.found: list[InputWarning] = []

    def written(self, table: str, column: str, row: int) -> str:
        """A cell of an instance as a person would write it."""
        said = self.schema.table(table).column(column)
        value = self.tables.get(table, column)[row]
        return self.tables.axes[said.axis][int(value)] if said.axis is not None else f"{value / said.scale:.12g}"

    def cells(
        self, table: str, column: str, rows: Ints, message: str | Sequence[str], suggestion: str | Sequence[str] = ""
    ) -> None:
        """Warn of these rows of an instance (from 0). ``message`` and ``suggestion``: one for all, or one a row."""
        listed = len(rows) if len(rows) <= LISTED else LISTED
        for n, row in enumerate(rows[:listed].tolist()):
            rest = len(rows) - listed if n == listed - 1 else 0
            self.found.append(
                InputWarning(
                    table,
                    message if isinstance(message, str) else message[n],
                    row + 1,
                    column,
                    self.written(table, column, row),
                    suggestion if isinstance(suggestion, str) else suggestion[n],
                    1 + rest,
                )
            )

    def outliers(self, table: str, column: str, *, small_too: bool = False) -> None:
        """Warn of values about a thousand times as large (or as small) as the others of the column.

        ``small_too``: small values are suspicious as well. Of sizes they are not: next to large datasets there are
        tables of a few kilobytes.
        """
        values = self.tables.get(table, column)
        large, small = thousandfold(values)
        unit = _unit(column)
        self.cells(table, column, np.flatnonzero(large), "about a thousand times the others in this column", unit)
        if small_too:
            words = "about a thousandth of the others in this column"
            self.cells(table, column, np.flatnonzero(small), words, unit)

    def unsupplied(self, table: str, column: str, supplied: Bools, what: str, *, every: Bools | None = None) -> None:
        """Warn of names in the column that nothing supplies although a similar name is supplied.

        Args:
            table, column: hold the names.
            supplied: [labels of the column's axis] is there any of it?
            what: what has none of it, as in ``no region has GPUs of this type``.
            every: [labels] names of which to warn even where no similar one is supplied.
        """
        said = self.schema.table(table).column(column)
        labels = self.tables.axes[said.axis or ""]
        at = self.tables.get(table, column)
        known = [label for label, there in zip(labels, supplied.tolist()) if there]
        given = self.tables.has(table, column)
        for label in np.unique(at[given]).tolist():
            if supplied[label]:
                continue
            near = similar(labels[label], known)
            broad = every is not None and bool(every[label])
            if near is None and not broad:
                continue
            hint = f"did you mean {near!r}?" if near is not None else did_you_mean(labels[label], known).lstrip("; ")
            rows = np.flatnonzero(given & (at == label))
            first = InputWarning(table, what, int(rows[0]) + 1, column, labels[label], hint, len(rows))
            self.found.append(first)

    def spellings(self, table: str, column: str) -> None:
        """Warn of names in the column that differ only by case, blanks or punctuation: they count as different."""
        said = self.schema.table(table).column(column)
        labels, at = self.tables.axes[said.axis or ""], self.tables.get(table, column)
        given = self.tables.has(table, column)
        known: dict[str, str] = {}
        for label in np.unique(at[given]).tolist():
            other = known.setdefault(_plain(labels[label]), labels[label])
            if other != labels[label]:
                rows = np.flatnonzero(given & (at == label))
                message, hint = f"counts as another type than {other!r}", f"did you mean {other!r}?"
                place = int(rows[0]) + 1
                self.found.append(InputWarning(table, message, place, column, labels[label], hint, len(rows)))


def thousandfold(values: Ints) -> tuple[Bools, Bools]:
    """Masks of the values that are about a thousand times as large, and as small, as most of the others.

    The comparison is one of logarithms. An outlier is ``FAR_FROM_MEDIAN`` and ``DEVIATIONS`` robust standard deviations
    away from the median, no value lies in the stretch of ``EMPTY_BETWEEN`` before it, and a thousandth of it (or a
    thousand times it) fits in with the others. Outliers are few: a quarter of the others, or one. 0 is no value.
    """
    at = np.flatnonzero(values > 0)
    logs = np.log10(values[at].astype(np.float64))
    large, small = np.zeros(len(values), np.bool_), np.zeros(len(values), np.bool_)
    large[at[_far_above(logs)]] = True
    small[at[_far_above(-logs)]] = True
    return large, small


def _far_above(logs: NDArray[np.float64]) -> Bools:
    """Mask of the decimal logarithms of a column's values that are about 3 above the others."""
    none = np.zeros(len(logs), np.bool_)
    if len(logs) <= FEWEST:
        return none
    above = logs - np.median(logs)
    deviation = max(NORMAL * float(np.median(np.abs(above))), LEAST_DEVIATION)
    far: Bools = above >= max(np.log10(FAR_FROM_MEDIAN), DEVIATIONS * deviation)
    few, many = logs[far], logs[~far]
    if not len(few) or len(many) < FEWEST or 4 * len(few) > len(many) + 2:
        return none
    if len(many) == FEWEST and np.ptp(many) > np.log10(ALIKE):
        return none
    corrected, fits = few - 3, np.log10(FITS_IN)
    if few.min() - many.max() < np.log10(EMPTY_BETWEEN):
        return none
    return far if corrected.max() <= many.max() + fits and corrected.min() >= many.min() - fits else none


def similar(name: str, known: Iterable[str]) -> str | None:
    """The one of the known names that the name was probably meant to be; None where it is just another name.

    Alike but for case, blanks and punctuation (and O for 0, l for 1); one of them with a word more (``NVIDIA H100``);
    or one character off in a longer name, digits apart: A100 and H100, or V100-16G and V100-32G, are two things.
    """
    known = list(known)
    plain = _plain(name)
    for other in known:
        if other != name and _plain(other) == plain:
            return other
    words = set(_words(name))
    for other in known:
        others = set(_words(other))
        if other != name and words and others and (words < others or others < words):
            return other
    for other in known:
        if (
            min(len(name), len(other)) >= SHORTEST
            and _digits(name) == _digits(other)
            and _one_off(plain, _plain(other))
        ):
            return other
    return None


def _plain(name: str) -> str:
    """Name in lower case without blanks and punctuation, with o as 0 and l as 1, to find misspellings."""
    return re.sub(r"[\W_]+", "", name.casefold()).replace("o", "0").replace("l", "1")


def _words(name: str) -> list[str]:
    """Words of a name in lower case, to find misspellings."""
    return [word for word in re.split(r"[\W_]+", name.casefold()) if word]


def _digits(name: str) -> str:
    """Digits of a name: names with other digits are no misspellings."""
    return "".join(character for character in name if character.isdigit())


def _one_off(first: str, second: str) -> bool:
    """Whether two names differ by one character that is changed, missing, or exchanged with its neighbour."""
    if len(first) > len(second):
        first, second = second, first
    if first == second or len(second) - len(first) > 1:
        return False
    at = next((n for n, (a, b) in enumerate(zip(first, second)) if a != b), len(first))
    if len(first) < len(second):
        return first[at:] == second[at + 1 :]
    exchanged = first[at : at + 2] == second[at : at + 2][::-1] and first[at + 2 :] == second[at + 2 :]
    return first[at + 1 :] == second[at + 1 :] or exchanged


def _unit(column: str) -> str:
    """Advice on what to check, by the unit in the column's name."""
    units = {"_tb": "is it in GB? The column is in TB", "_gb": "is it in MB? The column is in GiB"}
    ending = next((words for end, words in units.items() if column.endswith(end)), "")
    return ending or "check its unit"
