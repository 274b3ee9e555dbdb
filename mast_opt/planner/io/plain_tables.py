"""Folders, workbooks and JSON files of tables that are no problem, such as a trace of jobs."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import TypeVar

from mast_opt.core.arguments import a_path
from mast_opt.core.errors import InstanceError
from mast_opt.core.fork_safety import use_tables
from mast_opt.planner.io.atomic import new_folder
from mast_opt.planner.io.consistent_read import read_undisturbed
from mast_opt.planner.io.contents import placed
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.header import FORMAT, name_in
from mast_opt.planner.io.readers.opening import open_source
from mast_opt.planner.io.validation.tables import check_tables
from mast_opt.planner.io.write import only_instance
from mast_opt.planner.io.writers.folder import toml_text, write_tables
from mast_opt.problems.kind.schema import Schema, Tables

BuiltT = TypeVar("BuiltT")

JOB_TRACE = "job-trace"
"""Kind of a trace of jobs, as its header states it."""
RUN_FILES = ("events.jsonl", "metrics.json")
"""Files of a simulated run: its log and its figures."""


def read_tables(
    path: str | PathLike[str], kind: str, schema: Schema, build: Callable[[str, str, Tables], BuiltT]
) -> BuiltT:
    """Build an object, such as a trace, from the tables at a path.

    Args:
        path: a folder with ``instance.toml``, an .xlsx workbook or a .json file.
        kind: what the header has to say.
        schema: of the tables.
        build: from name, provenance and checked tables; it may raise InstanceError with faults that name a table and a
            row counted from 1.

    Raises:
        InstanceError: lists everything that is wrong, by file, row and column.
    """
    a_path("path", path)
    use_tables("read an instance")
    return read_undisturbed(Path(path), "instance.toml", lambda: _read(Path(path), kind, schema, build))


def is_of_kind(path: str | PathLike[str], kind: str) -> bool:
    """Whether the header at a path says that kind; its tables are not read."""
    source = open_source(Path(path), "instance", Faults())
    fields = source.header() if source else None
    return fields is not None and fields.get("kind") == kind


def is_run(path: Path) -> bool:
    """Whether a folder holds a simulated run."""
    return all((path / name).is_file() for name in RUN_FILES)


def _read(path: Path, kind: str, schema: Schema, build: Callable[[str, str, Tables], BuiltT]) -> BuiltT:
    """Build an object from the checked tables at a path. Raises InstanceError with every fault."""
    faults = Faults()
    source = open_source(path, "instance", faults)
    fields = source.header() if source else None
    if source is None or fields is None:
        raise InstanceError(faults.found)
    name, provenance = name_in(fields, kind, source.header_file, faults)
    if faults:  # its tables are of another kind
        raise InstanceError(faults.found)
    checked = check_tables(source, schema, faults)
    if checked is None:
        raise InstanceError(faults.found)
    try:
        return build(name, provenance, checked.tables)
    except InstanceError as error:
        raise InstanceError([placed(fault, source, checked) for fault in error.faults]) from None


def write_folder(
    path: Path, kind: str, name: str, provenance: str, schema: Schema, tables: Tables, *, format: str, force: bool
) -> None:
    """Write tables and their header to a new folder.

    ``format``: ``csv`` or ``parquet``. What is there already is only replaced with ``force``, and only if it is such a
    folder and nothing else. Raises InputError if it cannot be written, InstanceError for labels that no file could
    carry.
    """
    use_tables("write an instance")
    fields = {"format": FORMAT, "kind": kind, "name": name, "provenance": provenance or None}
    with new_folder(path.absolute(), only_instance(schema, force)) as partial:
        (partial / "instance.toml").write_text(toml_text(fields), encoding="utf-8", newline="\n")
        write_tables(partial, format, schema, tables)
