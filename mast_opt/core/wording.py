"""Numbers and names in sentences and tables."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, count, islice

NAMED = 6
"""Names that are listed before the rest is counted."""
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
"""Characters that move the cursor, hide, or reorder the text around them."""
_UNSAFE_IN_LINES = re.compile(UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
MOST_CANDIDATES = 2000
"""Names beyond which none is looked for that may have been meant."""


UNKNOWN = "–"
ROUNDING = 1e-9
"""Shares up to this come from rounding and are written as 0."""

RESTORE = (
    "Where a backup outside has lost data, add a row of it, in a region that is left, to 'replicas' of the instance "
    "before the loss, and run 'whatif' again."
)
"""Sentence on what brings lost data back."""
NOTICED = 0.1
"""Least amount of GPUs, TB or USD that is shown: shares in thousandths leave smaller remainders."""
SAME_RATIO = 5e-4
"""Difference of a ratio from a mark below which it counts as at the mark."""
SEEN_GAP = 1e-4
"""Least relative gap, and least gap in units of the objective, for which the latter is shown."""


def counted(number: float, noun: str, plural: str = "") -> str:
    """``1 job``, ``2,000 jobs``; the plural is the noun with an s unless given."""
    return f"{number:,.12g} {noun if number == 1 else plural or noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``; a long list is cut and the rest counted."""
    if len(names) > NAMED + 1:
        names = [*names[:NAMED], f"{len(names) - NAMED:,} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def named(noun: str, names: Sequence[str], plural: str = "") -> str:
    """``job a``, ``jobs a and b``; the plural is the noun with an s unless given."""
    return f"{noun if len(names) == 1 else plural or noun + 's'} {listed(names)}"


def unused(name: str, taken: Collection[str]) -> str:
    """A label that is not taken: the name, else the name with a number, as in ``lost``, ``lost-2``."""
    return next(free for free in chain([name], (f"{name}-{number}" for number in count(2))) if free not in taken)


def unused_labels(name: str, taken: Collection[str], number: int) -> list[str]:
    """Labels that are not taken, as many as asked for: the name with numbers from 1 on, as in ``server-1``."""
    known = set(taken)
    free = (label for label in (f"{name}-{at}" for at in count(1)) if label not in known)
    return list(islice(free, number))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``"; did you mean 'regions'?"`` or nothing. Says nothing where there are too many names to compare."""
    known = list(known)
    if len(known) > MOST_CANDIDATES:
        return ""
    by_fold = {other.strip().casefold(): other for other in known}
    same = by_fold.get(name.strip().casefold())
    close = [same] if same is not None else difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f"; did you mean {close[0]!r}?" if close and close[0] != name else ""


def shown(text: str) -> str:
    """Text from outside (a label, a file name, a cell) on one line, with escapes for its unsafe characters."""
    return UNSAFE.sub(_escape, text)


def shown_lines(text: str) -> str:
    """Printable text like ``shown``, with ends of lines kept."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    """An unsafe character of a text from outside as an escape."""
    return found[0].encode("unicode_escape").decode("ascii")


def plain(value: float | None) -> str:
    """A number with about five significant digits, thousands apart, no exponent for everyday sizes."""
    if value is None:
        return UNKNOWN
    if value != 0 and not 1e-4 <= abs(value) < 1e9:
        return f"{value:.4g}"
    if abs(value) >= 10_000:
        return f"{value:,.0f}"
    digits = 4 if abs(value) < 10 else 3 if abs(value) < 100 else 2 if abs(value) < 1000 else 1
    text = f"{value:,.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def noticed(value: float, what: str) -> float:
    """A figure as it is shown to people: 0 for an amount of GPUs, TB or USD below ``NOTICED``.

    Args:
        what: the figure's name or unit, such as ``overload_gpus`` or ``USD a month``. GPUs are whole from 1 on.
    """
    words = set(what.lower().replace("_", " ").split())
    if not words & {"gpus", "tb", "usd"} or "share" in words:
        return value
    if abs(value) < NOTICED:
        return 0.0
    return float(round(value)) if "gpus" in words and abs(value) >= 1 else value


def as_shown(figures: Mapping[str, float]) -> dict[str, float]:
    """Figures as they are shown to people, by their names: see ``noticed``. Demand that differs from supply by an
    amount of GPUs that is nothing fills it: ``peak_ratio`` and its parts are 1 then, and the overload costs nothing."""
    seen = {name: noticed(value, name) for name, value in figures.items()}
    if seen.get("overload_gpus") == 0.0:
        full = 1.0 - SAME_RATIO
        seen |= {name: 1.0 for name, value in seen.items() if name.startswith("peak_ratio") and value > full}
        seen |= {name: 0.0 for name in seen if name.startswith("overload_")}
    return seen


def gpus(value: float | None) -> str:
    """A number of GPUs for people: whole from 1 on, since nobody has a third of one, and with decimals below it, where
    work shares one."""
    return UNKNOWN if value is None else plain(round(noticed(value, "gpus"), 2))


def in_gpus(value: float) -> str:
    """A number of GPUs with its unit: "1 GPU", "12 GPUs"."""
    number = gpus(value)
    return f"{number} GPU{'' if number == '1' else 's'}"


def ratio(value: float, marks: Collection[float] = (1.0,)) -> str:
    """A ratio with two decimals, or with as many as show on which side of every mark it is; of a mark other than 1, at
    most three."""
    near = [mark for mark in marks if mark == 1.0 or abs(value - mark) >= SAME_RATIO]
    digits = next((n for n in range(2, 7) if round(value, n) not in near), 2)
    return f"{value:.{digits}f}"


def gap_text(relative: float | None, objective: float | None, bound: float | None) -> str:
    """A gap in percent and, where it can be seen, in units of the objective: ``1.20% (absolute 0.0034)``."""
    if relative is None or objective is None or bound is None or relative < SEEN_GAP:
        return percent(relative)
    amount = abs(objective - bound)
    return f"{percent(relative)} (absolute {plain(amount) if amount >= SEEN_GAP else f'<{SEEN_GAP}'})"


def of_term(value: float | None, term: str | None) -> str:
    """A value, with the term of a lexicographic objective that it is of: ``0.98 (peak)``."""
    return plain(value) if term is None or value is None else f"{plain(value)} ({term})"


def percent(share: float | None, digits: int | None = None) -> str:
    """A share as a percentage; without ``digits``, two decimals below 10% and one above. None beyond ``ROUNDING``
    is written as 0."""
    if share is None:
        return UNKNOWN
    if digits is None:
        digits = 2 if abs(share) < 0.1 else 1
    if ROUNDING < abs(share) < 0.5 * 10 ** -(digits + 2):
        return f"{'<' if share > 0 else '>-'}{0.1**digits:.{digits}f}%"
    return f"{0.0 if abs(share) <= ROUNDING else share:.{digits}%}"


def seconds(value: float) -> str:
    """A duration in words, in minutes from ten minutes on."""
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s" if value < 600 else f"{value / 60:.0f} min"


def amounts(values: Sequence[float | int | None]) -> list[str]:
    """A column of quantities with the same number of decimals throughout; none but 0 is written as 0."""
    known = [value for value in values if value is not None]
    whole = all(float(value).is_integer() for value in known)
    largest = max((abs(value) for value in known), default=0)
    digits = 0 if whole else 1 if largest >= 100 else 2
    return [UNKNOWN if value is None else _amount(value, digits) for value in values]


def _amount(value: float, digits: int) -> str:
    """A quantity with so many decimals; one that would round to 0 is shown as below the least."""
    if value and abs(value) < 0.5 * 10**-digits:
        return f"< {10**-digits:.{digits}f}" if value > 0 else f"> {-(10**-digits):.{digits}f}"
    return f"{value:,.{digits}f}"


def one_line(error: BaseException) -> str:
    """An exception on one line: its type and its text."""
    return f"{type(error).__name__}: {shown(str(error))}"
