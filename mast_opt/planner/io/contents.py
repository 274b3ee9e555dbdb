"""The problem, or the plan, that an opened source holds: its tables checked, and built into an object."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from mast_opt.core.errors import Fault, InstanceError, PlanError
from mast_opt.core.input_warning import InputWarning
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.header import from_fields, kind_in
from mast_opt.planner.io.readers.base import Source
from mast_opt.planner.io.readers.opening import open_source
from mast_opt.planner.io.validation.label_warnings import label_warnings
from mast_opt.planner.io.validation.tables import Checked, check_tables
from mast_opt.problems.kind.carry_over import matched
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.kind.schema import Axis, Schema
from mast_opt.problems.registry import kind_named, kind_of

PlaceT = TypeVar("PlaceT", Fault, InputWarning)


def open_instance(path: Path, faults: Faults) -> tuple[Source, Mapping[str, Any], Kind[Any, Any]]:
    """The source at a path, the fields of its header, and the kind that the header states; no table is read.

    Raises InstanceError with these faults where one of the three cannot be had.
    """
    source = open_source(path, "instance", faults)
    fields = source.header() if source else None
    name = kind_in(fields, source.header_file, faults) if source and fields is not None else None
    if source is None or fields is None or name is None:
        raise InstanceError(faults.found, "" if fields is not None else mistaken(path, "plan"))
    return source, fields, kind_named(name)


def mistaken(path: Path, stem: str) -> str:
    """A hint where the path holds a ``stem`` (an instance or a plan) instead of what was looked for; empty
    otherwise."""
    source = open_source(path, stem, Faults())
    if source is None or source.header() is None:
        return ""
    other = {"plan": "an instance, which it was made for", "instance": "a plan, as 'mast-opt solve --out' writes it"}
    return f"{path} holds {'a plan' if stem == 'plan' else 'an instance'}; give {other[stem]}"


def problem_in(
    source: Source, fields: Mapping[str, Any], kind: Kind[Any, Any], faults: Faults
) -> tuple[Any, Checked, tuple[InputWarning, ...]]:
    """The problem that a source holds, its checked tables, and values that were probably not meant.

    ``fields`` are those of the source's header. Raises InstanceError with these faults and all that are found here.
    """
    header = from_fields(fields, kind, source.header_file, faults)
    checked = check_tables(source, kind.tables.schema, faults, others=_others(source, "plan", kind.tables.plan_schema))
    if checked is None or faults:
        raise InstanceError(faults.found)
    try:
        problem = kind.tables.problem_from_tables(header, checked.tables)
    except InstanceError as error:
        raise InstanceError([placed(fault, source, checked) for fault in error.faults]) from None
    return problem, checked, warnings_in(source, kind, checked)


def warnings_in(source: Source, kind: Kind[Any, Any], checked: Checked) -> tuple[InputWarning, ...]:
    """Values of checked tables that were probably not meant, with their places in the source."""
    suspicious = (*kind.tables.warnings(checked.tables), *label_warnings(kind.tables.schema, checked.tables))
    return tuple(placed(one, source, checked) for one in suspicious)


def plan_by_label(problem: Problem[PlanT], source: Source, faults: Faults) -> tuple[PlanT, tuple[str, ...]]:
    """The plan of another instance that a source holds, as one for this problem, and the labels that do not match.

    Raises PlanError with these faults and all that are found here.
    """
    kind = kind_of(problem)
    schema = kind.tables.plan_schema
    mentioned = replace(schema, axes=tuple(Axis(axis.name) for axis in schema.axes))
    checked = check_tables(source, mentioned, faults, others=_others(source, "instance", kind.tables.schema))
    if checked is None or faults:
        raise PlanError(faults.found)
    return matched(kind, problem, checked.tables)


def plan_in(
    problem: Problem[PlanT], source: Source, axes: Mapping[str, tuple[str, ...]], faults: Faults, cause: str = ""
) -> PlanT:
    """The plan that a source holds for this problem.

    ``axes``: the labels of the problem. ``cause``: a sentence that explains faults.
    Raises PlanError with these faults and all that are found here.
    """
    kind = kind_of(problem)
    others = _others(source, "instance", kind.tables.schema)
    checked = check_tables(source, kind.tables.plan_schema, faults, axes, others)
    if checked is None or faults:
        raise PlanError(faults.found, cause)
    try:
        return kind.tables.plan_from_tables(problem, checked.tables)
    except (InstanceError, PlanError) as error:
        raise PlanError([placed(fault, source, checked) for fault in error.faults], cause) from None


def _others(source: Source, stem: str, schema: Schema) -> tuple[str, ...]:
    """Tables of the other half of a file that holds an instance and its plan; none where it does not."""
    return (stem, *(table.name for table in schema.tables)) if stem in source.tables() else ()


def placed(found: PlaceT, source: Source, checked: Checked) -> PlaceT:
    """A finding that names a table and a row counted from 1, with the name of the file and the row's number there."""
    row, numbers = found.row, checked.row_numbers.get(found.file)
    if row is not None and numbers is not None:
        row = int(numbers[row - 1])
    return replace(found, file=source.file(found.file), row=row)
