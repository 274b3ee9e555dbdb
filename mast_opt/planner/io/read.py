"""Readers of problems and plans from files.

Overrides that a ``plan.toml`` states: weights and order of terms, limits and copies, that the plan was solved with.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Generic

from mast_opt.core.arguments import a_path, checked
from mast_opt.core.errors import Fault, PlanError, UsageError
from mast_opt.core.fork_safety import use_tables
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.summary import Summarised, Summary
from mast_opt.core.verdict import Conflict
from mast_opt.core.wording import shown
from mast_opt.planner.io.checksum import checksum_of
from mast_opt.planner.io.consistent_read import read_undisturbed
from mast_opt.planner.io.contents import mistaken, open_instance, plan_by_label, plan_in, problem_in
from mast_opt.planner.io.faults import Faults, shortened
from mast_opt.planner.io.header import kind_in
from mast_opt.planner.io.readers.base import Source, Untyped
from mast_opt.planner.io.readers.folder import FolderSource
from mast_opt.planner.io.readers.opening import open_source
from mast_opt.planner.io.validation.tables import Rounding
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.origin import made_for
from mast_opt.problems.kind.overrides import Overrides, stated_limit
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.registry import kind_of

KEY = "overrides"
_KEYS = ("order", "weights", "limits", "peak_levels", "copies_min", "single_copies", "replicas")


def overrides_in(fields: Mapping[str, Any], problem: Problem[Any]) -> tuple[Overrides, Problem[Any]]:
    """Overrides that the fields of a plan state, and the instance with them.

    Raises:
        PlanError: something that this instance cannot have.
    """
    stated = fields.get(KEY, {})
    if not isinstance(stated, Mapping) or any(name not in _KEYS for name in stated):
        raise _fault(stated, f"a table with some of the keys {', '.join(_KEYS)}")
    order = stated.get("order")
    weights, limits, levels, copies, single, replicas = tables = [stated.get(name, {}) for name in _KEYS[1:]]
    if isinstance(order, Untyped):
        order = [name.strip() for name in order.split(",")]
    if order is not None and not (isinstance(order, list) and all(isinstance(name, str) for name in order)):
        raise _fault(order, "a list of terms", ".order")
    for name, table in zip(_KEYS[1:], tables, strict=True):
        if not isinstance(table, Mapping):
            raise _fault(table, "a table of numbers", f".{name}")
    try:
        numbers = {name: float(weight) for name, weight in weights.items()}
        values = {name: stated_limit(name, most) for name, most in limits.items()}
        by_tier = {int(tier): float(level) for tier, level in levels.items()}
        fewest = {name: int(number) for name, number in copies.items()}
        reasons = {name: str(reason) for name, reason in single.items()}
        chosen = {name: tuple(map(str, regions)) for name, regions in replicas.items()}
        terms = None if order is None else tuple(order)
        overrides = Overrides(numbers, terms, values, by_tier, fewest, reasons, chosen)
        return overrides, overrides.applied_to(problem)
    except (TypeError, ValueError, OverflowError, UsageError) as error:
        raise _fault(stated, str(error)) from None


def _fault(value: object, expected: str, where: str = "") -> PlanError:
    """Error of an override in ``plan.toml``."""
    return PlanError([Fault(f"plan.toml: {KEY}{where}", expected, value=str(value))])


CHECKSUM_SHOWN = len("sha256:") + 9
"""Characters of a checksum that are enough to distinguish two."""


@dataclass(frozen=True, eq=False, repr=False)
class Reading(Summarised):
    """An instance as it was read: the problem, and what a planner may want to know about the files or tables."""

    problem: Any
    kind: Kind[Any, Any]
    path: Path | None
    """None for a problem in memory."""
    format: str
    """``folder``, ``xlsx``, ``json`` or ``memory``."""
    rows: Mapping[str, int]
    """Table → number of rows, for the tables that are there."""
    missing: tuple[str, ...]
    """Optional tables that are not there."""
    roundings: tuple[Rounding, ...]
    """Columns with cells finer than the base unit."""
    warnings: tuple[InputWarning, ...]
    """Values that are allowed and were probably not meant."""
    seconds: float
    """Time to read, check and build."""

    @cached_property
    def conflicts(self) -> tuple[Conflict, ...]:
        """Limits that contradict one another: the files are well-formed, but no plan can meet them."""
        return self.kind.analysis.conflicts(self.problem)

    def _summary(self) -> Summary:
        """Summary of the reading: kind, warnings, rounded cells."""
        facts = (("kind", self.kind.name), ("name", self.problem.name), ("warnings", f"{len(self.warnings):,}"))
        rows = (
            *(("warning", str(one)) for one in self.warnings),
            *(("conflict", one.message) for one in self.conflicts),
            *(("note", note) for note in self.notes),
        )
        return Summary("Reading", (*facts, ("conflicts", f"{len(self.conflicts):,}")), ("", ""), rows)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a person who has read an instance; nothing in them is wrong."""
        absent = [f"no table {name}: {self.kind.tables.schema.table(name).missing}" for name in self.missing]
        return (*(str(rounding) for rounding in self.roundings), *absent)


@dataclass(frozen=True, eq=False)
class PlanReading(Generic[PlanT]):
    """A plan as it was read."""

    plan: PlanT
    fields: Mapping[str, Any]
    """Fields of ``plan.toml``; empty if there is none."""
    same_instance: bool | None
    """Whether the plan was made for exactly this instance; None if it does not say."""
    foreign: str = ""
    """A sentence where it was made for another one; empty otherwise."""
    overrides: Overrides = field(default_factory=Overrides)
    """Overrides with which the plan was solved instead of what its instance says; ``problem`` has them."""
    problem: Any = None
    """The instance with these overrides: what the figures of ``plan.toml`` are about."""
    unmatched: tuple[str, ...] = ()
    """Labels of the plan that the instance does not have, by axis; see ``read_start``."""
    solved_with: Mapping[str, Any] = field(default_factory=dict)
    """The table of overrides of ``plan.toml``, also where the plan was made for another instance."""


def _a_path_of_files(name: str, value: object) -> None:
    """Refuse a mapping where the path of an instance or plan is expected."""
    if isinstance(value, Mapping):
        raise UsageError(f"{name} is a mapping; mast_opt.from_tables makes a problem of tables in memory")
    a_path(name, value)


@checked(path=_a_path_of_files)
def read(path: str | PathLike[str]) -> Any:  # noqa: ANN401 - the file says of which kind; annotate the variable
    """The problem in a folder, an .xlsx workbook or a .json file.

    Raises InstanceError, which lists everything that is wrong with the files.
    """
    return reading_of(path).problem


def reading_of(path: str | PathLike[str]) -> Reading:
    """Read an instance like ``read``, with warnings, rounded cells, row counts, missing tables and conflicts."""
    _a_path_of_files("path", path)
    use_tables("read an instance")
    started = time.perf_counter()
    path = Path(path)
    return read_undisturbed(path, "instance.toml", lambda: _read_instance(path, started))


def _read_instance(path: Path, started: float) -> Reading:
    """Read an instance at a path, and time it. Raises InstanceError with every fault."""
    faults = Faults()
    source, fields, kind = open_instance(path, faults)
    problem, checked, warnings = problem_in(source, fields, kind, faults)
    there = [table.name for table in kind.tables.schema.tables if table.name not in checked.tables.missing]
    return Reading(
        problem=problem,
        kind=kind,
        path=path,
        format=source.format,
        rows={name: checked.tables.rows(name) for name in there},
        missing=tuple(table.name for table in kind.tables.schema.tables if table.name in checked.tables.missing),
        roundings=checked.roundings,
        warnings=warnings,
        seconds=time.perf_counter() - started,
    )


def kind_of_file(path: str | PathLike[str]) -> str:
    """The kind of the instance at this path, its tables not read. Raises InstanceError where it does not say."""
    use_tables("read an instance")
    return open_instance(Path(path), Faults())[2].name


def read_plan(problem: Problem[PlanT], path: str | PathLike[str]) -> PlanT:
    """The plan for this problem in a folder (or workbook or .json file). Raises PlanError, which lists every fault.

    A plan may be wrong for the problem and still be read: that is the verifier's business. Here it is only a
    fault to name what the problem does not have.
    """
    return read_plan_of(problem, path).plan


def read_plan_of(problem: Problem[PlanT], path: str | PathLike[str]) -> PlanReading[PlanT]:
    """Read a plan like ``read_plan``, with the fields of ``plan.toml``. Tables without a ``plan.toml`` are a plan
    too."""
    a_path("path", path)
    use_tables("read a plan")
    return read_undisturbed(Path(path), "plan.toml", lambda: _read_plan_of(problem, Path(path)))


def read_start(problem: Problem[PlanT], path: str | PathLike[str]) -> PlanReading[PlanT]:
    """Read a plan to begin from or to stay near. One that was made for another instance is matched by label: what this
    instance does not have is left out, and named in ``PlanReading.unmatched``."""
    a_path("path", path)
    use_tables("read a plan")
    return read_undisturbed(Path(path), "plan.toml", lambda: _read_plan_of(problem, Path(path), by_label=True))


def _read_plan_of(problem: Problem[PlanT], path: Path, *, by_label: bool = False) -> PlanReading[PlanT]:
    """Read a plan at a path, with its ``plan.toml`` and overrides. Raises PlanError with every fault."""
    kind = kind_of(problem)
    faults = Faults()
    source = open_source(path, "plan", faults)
    if source is None:
        raise PlanError(faults.found)
    _check_single(path, faults)
    fields = _plan_fields(source, kind, faults)
    header, instance = kind.tables.problem_to_tables(problem)
    foreign = _foreign(fields, header.name, checksum_of(kind.tables.schema, header, instance))
    cause = foreign or ("" if fields else mistaken(path, "instance"))
    unmatched: tuple[str, ...] = ()
    solved_with = fields.get(KEY, {})
    if by_label and foreign:
        plan, unmatched = plan_by_label(problem, source, faults)
        fields = {name: value for name, value in fields.items() if name != KEY}
    else:
        plan = plan_in(problem, source, instance.axes, faults, cause)
    same = None if "checksum" not in fields else not foreign
    overrides, stated = overrides_in(fields, problem)
    if same:
        plan = made_for(problem, plan, overrides)
    return PlanReading(plan, fields, same, foreign, overrides, stated, unmatched, solved_with)


def _check_single(path: Path, faults: Faults) -> None:
    """Raises PlanError for a folder of several plans, as ``solve --goals --out`` writes it."""
    names = sorted(str(one.parent) for one in path.glob("*/plan.toml")) if path.is_dir() else []
    if names and not (path / "plan.toml").exists():
        faults.add(str(path), f"one plan; this folder holds one for each goal: name {' or '.join(names)}")
        raise PlanError(faults.found)


def _foreign(fields: Mapping[str, Any], name: str, checksum: str) -> str:
    """Mismatch that ``plan.toml`` states between the plan's instance and the one of that name and checksum: by the
    checksum, or by the name where it states none."""
    stated, other = fields.get("checksum"), shown(str(fields.get("instance", name)))
    if stated == checksum or (stated is None and other == name):
        return ""
    if stated is None:
        return f"this plan was made for instance {other}, not for {name}"
    then, now = shown(shortened(str(stated), CHECKSUM_SHOWN)), shortened(checksum, CHECKSUM_SHOWN)
    if other == name:
        since = f"or this one has changed since (checksum {now})"
        return f"this plan was made for another instance called {name} (checksum {then}), {since}"
    return f"this plan was made for instance {other} (checksum {then}), not for {name} ({now})"


def _plan_fields(source: Source, kind: Kind[Any, Any], faults: Faults) -> Mapping[str, Any]:
    """Fields of ``plan.toml``; a fault if the plan is of another kind."""
    if isinstance(source, FolderSource) and not (source.path / source.header_file).exists():
        return {}
    fields = source.header()
    if fields is None:
        return {}
    stated = kind_in(fields, source.header_file, faults)
    if stated is not None and stated != kind.name:
        faults.add(f"{source.header_file}: kind", f"a plan for {kind.name}", value=stated)
    stages = fields.get("stages")
    if isinstance(stages, Mapping):  # a sheet of keys and values numbers them
        return {**fields, "stages": list(stages.values())}
    return fields
