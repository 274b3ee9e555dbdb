"""Steps of a proof: constraints that follow from the program's limits, or from earlier steps, by a rule of VIPR."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mast_opt.planner.proof.exact_program import ExactProgram

Side = tuple[str, int, int]
"""A limit of the program: ``row`` or ``column``, its position, and 0 for the lower or 1 for the upper limit."""
Vector = Mapping[int, Fraction]


@dataclass(frozen=True, eq=False)
class Step:
    """A constraint, and how it follows."""

    sense: str
    """G or L."""
    rhs: Fraction
    entries: Vector | None
    """Entries by column; None for those of the objective."""
    rule: str = "asm"
    factors: "Mapping[Source, Fraction] | None" = None
    """Factors of ``lin`` and ``rnd``."""
    parts: "tuple[Step, ...]" = ()
    """Steps of ``uns``: the one that holds on one side of a split, the assumption there, and both of the other side."""

    @property
    def sources(self) -> "list[Step]":
        """The steps from which it follows."""
        return [*self.parts, *(one for one in self.factors or () if isinstance(one, Step))]


Source = Side | Step
Factors = Mapping[Source, Fraction]


def completed(program: "ExactProgram", sense: str, entries: Vector, using: Factors) -> Step | None:
    """The constraint with these entries that a combination implies once limits of columns make up for the rest.

    Returns None where a column lacks the limit.
    """
    missing, rhs, used = dict(entries), Fraction(0), dict(using)
    for source, factor in using.items():
        limit, vector = program.constraint(source)
        rhs += factor * limit
        for column, number in vector:
            missing[column] = missing.get(column, Fraction(0)) - factor * number
    for column, number in missing.items():
        if number:
            side = int((number > 0) == (sense == "L"))
            limit_of = program.column_limits[column][side]
            if limit_of is None:
                return None
            source = program.source(("column", column, side))
            used[source] = used.get(source, Fraction(0)) + number
            rhs += number * limit_of
    return Step(sense, rhs, entries, "lin", {source: factor for source, factor in used.items() if factor})


def rounded(step: Step) -> Step:
    """A step whose columns and entries are whole, with its right-hand side rounded."""
    if step.rhs.denominator == 1:
        return step
    rhs = Fraction(floor(step.rhs) if step.sense == "L" else ceil(step.rhs))
    return Step(step.sense, rhs, step.entries, "rnd", step.factors)


def split(entries: Vector, below: Fraction) -> tuple[Step, Step]:
    """The assumptions that a whole combination of whole columns is at most a number, and at least the next one."""
    return Step("L", below, entries), Step("G", below + 1, entries)


def joined(one: Step | None, first: Step, other: Step | None, second: Step) -> Step | None:
    """The step that holds on either side of a split; of two right-hand sides it has the weaker one."""
    if one is None or other is None:
        return None
    if one.entries == {} and other.entries:
        one, other, first, second = other, one, second, first
    sides = [step.rhs for step in (one, other) if step.entries or not one.entries]
    rhs = max(sides) if one.sense == "L" else min(sides)
    return Step(one.sense, rhs, one.entries, "uns", parts=(one, first, other, second))


def ordered(root: Step) -> Iterator[Step]:
    """A step and all from which it follows, each after its sources."""
    done: set[Step] = set()
    waiting = [root]
    while waiting:
        step = waiting[-1]
        before = [one for one in step.sources if one not in done]
        if before and step not in done:
            waiting.extend(reversed(before))
            continue
        waiting.pop()
        if step not in done:
            done.add(step)
            yield step


def written(root: Step, of: Mapping[Side, int], first: int) -> list[str]:
    """The lines of a step and of all from which it follows, each after its sources.

    Args:
        root: the step.
        of: positions of the program's limits.
        first: the position of the first line.
    """
    place: dict[Step, int] = {}
    lines: list[str] = []

    def number(source: Source) -> int:
        return place[source] if isinstance(source, Step) else of[source]

    for step in ordered(root):
        entries = "OBJ" if step.entries is None else listed(step.entries.items())
        reason = step.rule
        if step.factors is not None:
            reason += f" {listed((number(source), factor) for source, factor in step.factors.items())}"
        reason += "".join(f" {place[part]}" for part in step.parts)
        place[step] = first + len(lines)
        lines.append(f"D{len(lines)} {step.sense} {step.rhs} {entries} {{ {reason} }} -1")
    return lines


def listed(entries: Iterable[tuple[int, Fraction]]) -> str:
    """Entries that are not 0, with their number in front."""
    words = [f"{at} {number}" for at, number in entries if number]
    return " ".join([str(len(words)), *words])
