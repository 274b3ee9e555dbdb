"""Scenario files in TOML: what may happen to an instance."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from os import PathLike
from pathlib import Path
from typing import Any

from mast_opt.core.arguments import a_number, a_path, a_text, a_whole, anything, checked, mapping_of, optional, refuse
from mast_opt.core.errors import InputError, UsageError
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.wording import UNSAFE, did_you_mean, shown
from mast_opt.planner.io.readers.folder import read_toml
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import ProblemT
from mast_opt.problems.kind.scenario_values import LARGEST

BASE = "base"
"""Name of the instance as it is, which no scenario may have."""
_SETTINGS = ("name", "weight")


@dataclass(frozen=True)
class Scenario:
    """Something that may happen to an instance."""

    name: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Key → value, in the order in which they are made; the keys are those of the kind."""
    weight: float = 1.0
    """Weight in the average of a robust plan."""
    begins_day: int | None = None
    """Day on which a period begins, today being day 0; None: when the copies of those before may be over."""

    def __post_init__(self) -> None:
        a_text("name", self.name)
        if not self.name:
            raise refuse("name", self.name, "a name that is not empty")
        mapping_of(anything)("changes", self.changes)
        a_number("weight", self.weight)
        optional(a_whole(0))("begins_day", self.begins_day)


@checked(path=a_path)
def read_scenarios(path: str | PathLike[str]) -> tuple[Scenario, ...]:
    """The scenarios of a file: ``[[scenario]]`` tables with a ``name``, perhaps a ``weight``, and changes.

    Raises:
        InputError: the file cannot be read, or is not such a file.
    """
    return _read(path, "scenario")


@checked(path=a_path)
def read_periods(path: str | PathLike[str]) -> tuple[Scenario, ...]:
    """The periods of a file, in order: ``[[period]]`` tables like those of scenarios.

    Raises:
        InputError: the file cannot be read, or is not such a file.
    """
    return _read(path, "period")


def _read(path: str | PathLike[str], noun: str) -> tuple[Scenario, ...]:
    """The tables of a scenario file that are headed ``[[noun]]``."""
    content = read_toml(Path(path), f"{noun}s")
    tables = content.get(noun)
    if set(content) != {noun} or not isinstance(tables, list) or not tables:
        found = shown(", ".join(content)) or "nothing"
        raise InputError(f"{path} holds {found}; expected one or more tables headed [[{noun}]]")
    scenarios = []
    for number, table in enumerate(tables, 1):
        if not isinstance(table, dict):
            raise InputError(f"{path}, {noun} {number}: expected a table headed [[{noun}]]")
        name, weight = table.get("name"), table.get("weight", 1.0)
        if not isinstance(name, str) or not name:
            raise InputError(f'{path}, {noun} {number}: expected name = "…"')
        if UNSAFE.search(name):
            expected = "a name without control characters and invisible ones"
            raise InputError(f"{path}, {noun} {number}: name is '{shown(name)}'; expected {expected}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= sys.float_info.max:
            raise InputError(f"{path}, {noun} {name}: weight is {_brief(weight)}; expected a number of at least 0")
        changes = {key: value for key, value in table.items() if key not in _SETTINGS}
        begins = changes.pop("begins_day", None) if noun == "period" else None
        if begins is not None and (type(begins) is not int or begins < 0):
            words = f"begins_day is {_brief(begins)}; expected a whole number of days from today, at least 0"
            raise InputError(f"{path}, period {name}: {words}")
        scenarios.append(Scenario(name, changes, float(weight), begins))
    return tuple(scenarios)


def _brief(value: object) -> str:
    """The value in a scenario file as Python writes it; a whole number of hundreds of digits by its size."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"a whole number of {value.bit_length()} bits"
    return repr(value)


def check_scenarios(kind: Kind[Any, Any], scenarios: Sequence[Scenario]) -> None:
    """Raises UsageError for names twice, no changes at all, or a key that the kind does not know."""
    known = kind.analysis.hooks().changes
    if not known:
        raise UsageError(f"{kind.name} has no scenarios")
    if not scenarios:
        raise UsageError("there are no scenarios; expected at least one")
    seen = {BASE}
    for scenario in scenarios:
        if scenario.name in seen:
            taken = "the instance as it is" if scenario.name == BASE else "another scenario"
            raise UsageError(f"two scenarios cannot both be called {scenario.name!r}: that is {taken}")
        seen.add(scenario.name)
        unknown = [key for key in scenario.changes if key not in known]
        if unknown:
            known_keys = did_you_mean(unknown[0], known) or f"; expected some of: {', '.join(known)}"
            raise UsageError(f"scenario {scenario.name}: unknown key {unknown[0]!r}{known_keys}")
        if not scenario.changes and scenario.begins_day is None:
            raise UsageError(f"scenario {scenario.name} changes nothing; expected some of: {', '.join(known)}")


def scenario_warnings(kind: Kind[Any, Any], scenarios: Sequence[Scenario], file: str) -> tuple[InputWarning, ...]:
    """Factors that were probably meant as percentages: ``grow_demand = 30`` multiplies demand by thirty.

    ``file``: what the warnings call the file of the scenarios.
    """
    known = kind.analysis.hooks().changes
    found = []
    for scenario in scenarios:
        for key, value in scenario.changes.items():
            plausible = known[key].plausible
            if plausible is None:
                continue
            for name, factor in _factors(key, value):
                if factor > plausible[1]:
                    more = f"for {factor:g} % more write {_written(1 + factor / 100)}"
                elif 0 < factor < plausible[0]:
                    more = f"for {100 * factor:g} % more write {_written(1 + factor)}"
                else:
                    continue
                message = f"this multiplies by {factor:g}"
                found.append(
                    InputWarning(f"{file}: scenario {scenario.name}", message, None, name, f"{factor:g}", more)
                )
    return tuple(found)


def _factors(key: str, value: object) -> list[tuple[str, float]]:
    """Every number in the value of a scenario's change, with its key."""
    if isinstance(value, Mapping):
        return [pair for name, inner in value.items() for pair in _factors(f"{key}.{name}", inner)]
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
        return []  # an error, when the change is made
    return [(key, float(value))]


def _written(factor: float) -> str:
    """A factor of a scenario as its file would state it."""
    return f"{factor:.12g}"


def happened(kind: Kind[ProblemT, Any], problem: ProblemT, scenario: Scenario) -> ProblemT:
    """The instance after the scenario; what is wrong with a value is stated with the scenario's name."""
    known = kind.analysis.hooks().changes
    for key, value in scenario.changes.items():
        try:
            problem = known[key].apply(problem, value)
        except UsageError as error:
            raise UsageError(f"scenario {scenario.name}: {error}") from error
    return problem


def dated(
    kind: Kind[ProblemT, Any], problem: ProblemT, periods: Sequence[Scenario], days: Callable[[ProblemT], Fraction]
) -> Iterator[tuple[Scenario, ProblemT, int]]:
    """(period, the instance with its changes and those before, the day on which it begins) in turn.

    Raises:
        UsageError: a period begins before the copies of those before may be over.
    """
    over = Fraction(0)
    for period in periods:
        problem = happened(kind, problem, period)
        begins = int(over) if period.begins_day is None else period.begins_day
        if begins < int(over):
            late = f"the copies of those before may take until day {int(over)}; state fewer 'days' there"
            raise UsageError(f"period {period.name} begins on day {begins}, but {late}")
        yield period, problem, begins
        over = max(over, Fraction(begins)) + days(problem)
