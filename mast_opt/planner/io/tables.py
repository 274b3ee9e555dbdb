"""Problems and plans from tables in memory, and back to data frames."""

import time
import warnings
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

import polars as pl

from mast_opt.core.arguments import anything, checked, mapping_of
from mast_opt.core.errors import InstanceError, InstanceWarning, UsageError
from mast_opt.core.fork_safety import use_tables
from mast_opt.core.input_warning import InputWarning
from mast_opt.core.solve_result import Status
from mast_opt.planner.io.contents import plan_in, problem_in, warnings_in
from mast_opt.planner.io.faults import Faults, one_of
from mast_opt.planner.io.header import FORMAT
from mast_opt.planner.io.read import Reading, reading_of
from mast_opt.planner.io.readers.memory import MemorySource
from mast_opt.planner.io.validation.frames import table_frames, with_numbers
from mast_opt.planner.io.validation.tables import check_tables
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.kind.schema import Schema, Tables
from mast_opt.problems.registry import KindName, check_plan, kind_named, kind_of

if TYPE_CHECKING:
    from mast_opt.problems.data_placement import DataPlacement
    from mast_opt.problems.job_placement import JobPlacement
    from mast_opt.problems.resource_allocation import ResourceAllocation
    from mast_opt.problems.server_assignment import ServerAssignment
    from mast_opt.problems.task_reassignment import TaskReassignment


PlanT_co = TypeVar("PlanT_co", covariant=True)


class Planned(Protocol[PlanT_co]):
    """A solution, as far as its tables need it."""

    @property
    def plan(self) -> PlanT_co | None:
        """The plan; None where none was found."""

    @property
    def status(self) -> Status:
        """Status of a planned solution, with which the solve ended."""


class HeaderFields(TypedDict, total=False):
    """Fields of ``instance.toml`` besides format and kind; see ``from_tables``."""

    name: str
    rules: Mapping[str, Any] | None
    objective: Mapping[str, Any] | None
    provenance: str


@overload
def from_tables(
    kind: Literal["data-placement"], tables: Mapping[str, Any], **header: Unpack[HeaderFields]
) -> "DataPlacement": ...
@overload
def from_tables(
    kind: Literal["job-placement"], tables: Mapping[str, Any], **header: Unpack[HeaderFields]
) -> "JobPlacement": ...
@overload
def from_tables(
    kind: Literal["server-assignment"], tables: Mapping[str, Any], **header: Unpack[HeaderFields]
) -> "ServerAssignment": ...
@overload
def from_tables(
    kind: Literal["task-reassignment"], tables: Mapping[str, Any], **header: Unpack[HeaderFields]
) -> "TaskReassignment": ...
@overload
def from_tables(
    kind: Literal["resource-allocation"], tables: Mapping[str, Any], **header: Unpack[HeaderFields]
) -> "ResourceAllocation": ...
@overload
def from_tables(kind: KindName, tables: Mapping[str, Any], **header: Unpack[HeaderFields]) -> Any: ...  # noqa: ANN401 - a kind that is not written out
def from_tables(kind: KindName, tables: Mapping[str, Any], **header: Unpack[HeaderFields]) -> Any:
    """A problem from tables in memory: the same tables, columns, units and faults as in files.

    Args:
        kind: hyphenated, as in ``data-placement``.
        tables: name of each table → a polars, pandas or Arrow table, a mapping of columns, or a list of row mappings.
            A column may be a list, a numpy array or a series. None is an empty cell, and so is NaN in a pandas column;
            elsewhere NaN is a fault. Nothing given is changed, and nothing of it is shared with the problem.
        name: of the instance; ``instance`` unless given.
        rules: as in ``[rules]`` of ``instance.toml``, such as ``{"remote_reads": "forbid"}``.
        objective: as in ``[objective]`` of ``instance.toml``, such as ``{"weights": {"peak": 2.0}}``, or
            ``{"policy": "max-min"}`` for a kind that has policies.
        provenance: where the data come from, in words.

    Warns:
        InstanceWarning: a value is allowed and was probably not meant, such as a misspelt GPU type; see ``validate``.

    Raises:
        InstanceError: lists everything that is wrong, by table, row (counted from 1) and column.
        UsageError: there is no such kind, or an argument is of the wrong type.
    """
    problem, found = from_tables_with_warnings(kind, tables, header)
    for one in found:
        warnings.warn(str(one), InstanceWarning, stacklevel=2)
    return problem


def from_tables_with_warnings(
    kind: str, tables: Mapping[str, Any], header: Mapping[str, Any]
) -> tuple[Any, tuple[InputWarning, ...]]:
    """Build a problem like ``from_tables``, but return the warnings instead of issuing them."""
    use_tables("read an instance")
    mapping_of(anything)("tables", tables)
    stated: dict[str, Any] = {"format": FORMAT, "kind": kind, "name": "instance"}
    for field, value in header.items():
        if field not in HeaderFields.__annotations__:
            known = one_of(HeaderFields.__annotations__)
            raise UsageError(f"from_tables has no argument {field!r}; expected some of: {known}")
        if value is not None and value != "":
            stated[field] = value
    chosen, faults = kind_named(kind), Faults()
    problem, _, found = problem_in(MemorySource(tables, stated, "from_tables", faults), stated, chosen, faults)
    return problem, found


def validate(given: str | PathLike[str] | Problem[Any]) -> Reading:
    """An instance with what a planner may want to know of it: warnings, rounded cells, row counts and conflicts.

    Args:
        given: a folder, an .xlsx workbook, a .json file, or a problem in memory. The rows of a problem are counted as
            in ``to_tables``.

    Raises:
        InstanceError: lists everything that is wrong with the files.
    """
    if not isinstance(given, Problem):
        return reading_of(given)
    use_tables("read an instance")
    started = time.perf_counter()
    kind, faults = kind_of(given), Faults()
    schema, tables = kind.tables.schema, labelled_tables(given)
    source = MemorySource(tables, {}, "validate", faults)
    checked_again = check_tables(source, schema, faults, others=())
    if checked_again is None or faults:
        raise InstanceError(faults.found)
    return Reading(
        problem=given,
        kind=kind,
        path=None,
        format=source.format,
        rows={name: len(table) for name, table in tables.items()},
        missing=tuple(table.name for table in schema.tables if table.name not in tables),
        roundings=(),
        warnings=warnings_in(source, kind, checked_again),
        seconds=time.perf_counter() - started,
    )


@checked(tables=mapping_of(anything))
def plan_from_tables(problem: Problem[PlanT], tables: Mapping[str, Any]) -> PlanT:
    """A plan for this problem from tables in memory, which are those of a plan folder; see ``from_tables``.

    A plan may break limits of the problem: ``verify`` finds that.

    Raises PlanError, which lists everything that is wrong, by table, row and column.
    """
    use_tables("read a plan")
    kind = kind_of(problem)
    _, instance = kind.tables.problem_to_tables(problem)
    faults = Faults()
    return plan_in(problem, MemorySource(tables, {}, "plan_from_tables", faults), instance.axes, faults)


def labelled_tables(problem: Problem[PlanT], plan: PlanT | Planned[PlanT] | None = None) -> dict[str, pl.DataFrame]:
    """The tables of a problem, or of a plan for it, with labels and in the units of files; see ``mast_opt.to_tables``.

    Raises:
        UsageError: the solution has no plan, or the plan is of another kind.
        PlanError: the plan is for another instance.
    """
    use_tables("read an instance")
    kind = kind_of(problem)
    if plan is None:
        _, tables = kind.tables.problem_to_tables(problem)
        return _frames(kind.tables.schema, tables)
    given: Any = plan
    if not isinstance(given, kind.plan_type) and hasattr(given, "status"):
        given = _plan_of(given)
    check_plan(kind, problem, given)
    return _frames(kind.tables.plan_schema, kind.tables.plan_to_tables(problem, given))


def _plan_of(solution: Planned[PlanT]) -> PlanT:
    """Plan of a solution for its tables. Raises UsageError where the solve found none."""
    if solution.plan is None:
        raise UsageError(f"there is no plan to show: the solve ended {solution.status.value}")
    return solution.plan


def _frames(schema: Schema, tables: Tables) -> dict[str, pl.DataFrame]:
    """Table → data frame with numbers, in the units of files."""
    return {table.name: with_numbers(table, frame) for table, frame in table_frames(schema, tables)}
