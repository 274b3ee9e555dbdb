"""Writers of problems and plans to files."""

import json
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl
from numpy.typing import NDArray

from mast_opt.core.arguments import a_flag, a_path, a_text, checked, optional
from mast_opt.core.errors import Fault, InputError, InstanceError, UsageError
from mast_opt.core.fork_safety import use_tables
from mast_opt.core.solve_result import Event
from mast_opt.core.wording import UNSAFE
from mast_opt.core.wording import shown as printable
from mast_opt.planner.io.atomic import check_free, check_writable, new_file, new_folder
from mast_opt.planner.io.certificate import CERTIFICATE, DIGESTS, write_certificate, write_digests
from mast_opt.planner.io.checksum import checksum_of
from mast_opt.planner.io.events import EVENTS, write_events
from mast_opt.planner.io.faults import Faults, one_of, whole_letters
from mast_opt.planner.io.header import FORMAT, NAME_EXPECTED, to_fields
from mast_opt.planner.io.readers.excel import ExcelSource
from mast_opt.planner.io.validation.cells import faulty_labels
from mast_opt.planner.io.validation.frames import is_number, table_frames
from mast_opt.planner.io.writers.excel import write_excel
from mast_opt.planner.io.writers.folder import toml_text, write_tables
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.kind.schema import Column, ColumnType, Schema, Tables
from mast_opt.problems.registry import check_plan, kind_of


def write_json(path: Path, fields: Mapping[str, Any], schema: Schema, tables: Tables) -> None:
    """Write an instance as JSON: numbers are written with all their digits, whatever a float could hold."""
    parts = [f'"instance": {json.dumps(fields, ensure_ascii=False, indent=1)}']
    for table, frame in table_frames(schema, tables):
        members = [_member(table.column(name), name) for name in frame.columns]
        row = pl.concat_str([pl.lit(" {"), pl.concat_str(members, separator=", "), pl.lit("}")])
        rows = frame.select(row).to_series()
        body = ",\n".join(rows.to_list())
        parts.append(f'"{table.name}": [\n{body}\n]' if body else f'"{table.name}": []')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8", newline="\n")


def _member(column: Column, name: str) -> pl.Expr:
    """``"name": value`` for each row. Labels hold no control characters, so two escapes are enough."""
    value = pl.col(name).cast(pl.String)
    if not is_number(column) and column.type is not ColumnType.BOOLEAN:
        escaped = value.str.replace_all("\\", "\\\\", literal=True).str.replace_all('"', '\\"', literal=True)
        value = '"' + escaped + '"'
    return f'"{name}": ' + value.fill_null("null")


FORMATS = ("csv", "parquet", "xlsx", "json")
"""Formats that ``write`` can write; the first two are folders."""

_FILE_WRITERS = {"xlsx": write_excel, "json": write_json}
RESERVED = ("format", "kind", "instance", "checksum")
"""Fields of ``plan.toml`` on the instance that a plan is for."""


@checked(path=a_path, format=optional(a_text), force=a_flag)
def write(problem: Problem[Any], path: str | PathLike[str], format: str | None = None, *, force: bool = False) -> None:
    """Write an instance: ``.xlsx`` and ``.json`` paths as one file, any other as a folder of CSV tables.

    ``format``: one of ``FORMATS``, to say otherwise. What is there already is only replaced with ``force``, and only
    if it is an instance and nothing else. Raises UsageError for a format that does not fit, InputError if the files
    cannot be written (nothing is then left half-written), InstanceError for labels that no file could carry, or an
    empty name.
    """
    use_tables("write an instance")
    target = Path(path).absolute()
    format = format or _format_of(target)
    if format not in FORMATS:
        raise UsageError(f"there is no format {format!r}; expected one of: {one_of(FORMATS)}")
    kind = kind_of(problem)
    header, tables = kind.tables.problem_to_tables(problem)
    if not header.name.strip():
        raise InstanceError([Fault("instance: name", "a name that is not empty", value=header.name)])
    if UNSAFE.search(header.name) and faulty_labels(pl.Series([whole_letters(header.name.strip(" "))]))[0]:
        raise InstanceError([Fault("instance: name", NAME_EXPECTED, value=whole_letters(header.name))])
    fields = to_fields(header)
    if format in _FILE_WRITERS:
        if target.suffix.lower() != f".{format}":
            raise UsageError(f"{target.name}: a file in the format {format} needs a name that ends in .{format}")
        check_free(target, force=force)
        with new_file(target) as partial:
            _FILE_WRITERS[format](partial, fields, kind.tables.schema, tables)
    else:
        if _format_of(target) in _FILE_WRITERS:
            raise UsageError(f"{target.name}: {format} tables make a folder; choose a name without {target.suffix}")
        with new_folder(target, _only("instance", kind.tables.schema, force)) as partial:
            (partial / "instance.toml").write_text(toml_text(fields), encoding="utf-8", newline="\n")
            write_tables(partial, format, kind.tables.schema, tables)


def check_target(problem: Problem[Any], path: str | PathLike[str], *, force: bool = False) -> None:
    """Raises InputError where ``write`` of an instance would refuse to write because of what is there, or could not
    write.
    """
    target = Path(path).absolute()
    if _format_of(target) in _FILE_WRITERS:
        check_free(target, force=force)
    else:
        _only("instance", kind_of(problem).tables.schema, force)(target)
    check_writable(target)


def _format_of(target: Path) -> str:
    """Format of an output file by its suffix; a folder of CSV tables for any other."""
    suffix = target.suffix.lower()[1:]
    return suffix if suffix in _FILE_WRITERS else "csv"


def write_plan(
    problem: Problem[PlanT],
    plan: PlanT,
    fields: Mapping[str, Any],
    path: str | PathLike[str],
    certificate: Mapping[str, NDArray[Any]] | None = None,
    events: Iterable[Event] = (),
) -> None:
    """Write a plan: a folder with every table of the plan, ``plan.toml``, and, if given, the certificate of its bound
    and the events of its solve.

    ``fields`` is what ``plan.toml`` is to say (objective, bound, solver, status, seed, versions, …); what is None is
    left out. Kind, name and checksum of the instance are added. An earlier plan at this path is replaced; anything
    else there is left alone, with an InputError. Ask ``check_plan_target`` before a long solve.

    Raises PlanError for a plan of another instance.
    """
    use_tables("write a plan")
    kind = kind_of(problem)
    stated = stated_fields(problem, fields)
    check_plan(kind, problem, plan)
    with new_folder(Path(path).absolute(), _only("plan", kind.tables.plan_schema, force=True)) as partial:
        (partial / "plan.toml").write_text(toml_text(stated), encoding="utf-8", newline="\n")
        write_tables(partial, "csv", kind.tables.plan_schema, kind.tables.plan_to_tables(problem, plan))
        if certificate is not None:
            write_certificate(partial, certificate)
        write_digests(partial, kind.tables.digests(problem))
        write_events(partial, events)


def stated_fields(problem: Problem[Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of ``plan.toml``: these fields, and the instance that the plan is for.

    Raises UsageError where ``fields`` state that already.
    """
    clash = [name for name in RESERVED if name in fields]
    if clash:
        raise UsageError(f"plan.toml gets {one_of(RESERVED)} by itself; leave out {one_of(clash)}")
    kind = kind_of(problem)
    header, instance = kind.tables.problem_to_tables(problem)
    checksum = checksum_of(kind.tables.schema, header, instance)
    return {"format": FORMAT, "kind": kind.name, "instance": header.name, "checksum": checksum, **fields}


def check_plan_target(problem: Problem[Any], path: str | PathLike[str]) -> None:
    """Raises InputError where ``write_plan`` would refuse to write because of what is there, or could not write."""
    target = Path(path).absolute()
    if target.suffix.lower() == ".xlsx":
        check_workbook_target(target)
    else:
        _only("plan", kind_of(problem).tables.plan_schema, force=True)(target)
    check_writable(target)


def check_workbook_target(target: Path) -> None:
    """Raises InputError where a workbook of results may not be written: another program has the file open, or what is
    there is no earlier workbook of results."""
    for lock in (target.with_name(f".~lock.{target.name}#"), target.with_name(f"~${target.name}")):
        if lock.exists():
            raise InputError(
                f"{target} is open in another program ({lock.name} says so); close it there, or choose another path"
            )
    if target.is_dir():
        raise InputError(f"{target} is a folder; choose the name of a file")
    if target.exists():
        faults = Faults()
        there = ExcelSource(target, "plan", faults)
        if faults or not {"plan", "instance"} <= there.sheets():
            raise InputError(f"{target} is no earlier workbook of results; choose another path")


def only_instance(schema: Schema, force: bool) -> Callable[[Path], None]:
    """A check that a path holds nothing, or with ``force`` an instance with tables of this schema and nothing else."""
    return _only("instance", schema, force)


def _only(stem: str, schema: Schema, force: bool) -> Callable[[Path], None]:
    """A check that a path holds nothing but what may be replaced there."""
    names = {f"{stem}.toml"} | {f"{table.name}{suffix}" for table in schema.tables for suffix in (".csv", ".parquet")}
    if stem == "plan":
        names |= {CERTIFICATE, DIGESTS, EVENTS}

    def check(target: Path) -> None:
        if not target.exists():
            return
        if not target.is_dir():
            raise InputError(f"{target} is not a folder; choose another path for the {stem}")
        content = sorted(entry.name for entry in target.iterdir())
        if not content:
            return
        foreign = [name for name in content if name not in names]
        if foreign or f"{stem}.toml" not in content:
            shown = printable(one_of((foreign or content)[:3]))
            raise InputError(f"{target} holds {shown}, which is no part of an earlier {stem}; choose another path")
        if not force:
            raise InputError(
                f"{target} exists already; choose another path, or overwrite it (--force; in Python, force=True)"
            )

    return check
