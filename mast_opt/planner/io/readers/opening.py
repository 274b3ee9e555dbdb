"""Choice of the reader for an input, by its path."""

from pathlib import Path

from mast_opt.planner.io.atomic import previous_of
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.readers.base import Source
from mast_opt.planner.io.readers.excel import ExcelSource
from mast_opt.planner.io.readers.folder import FolderSource
from mast_opt.planner.io.readers.json_file import JsonSource

_FILES: dict[str, type[ExcelSource] | type[JsonSource]] = {".xlsx": ExcelSource, ".json": JsonSource}


def open_source(path: Path, stem: str, faults: Faults) -> Source | None:
    """The input at a path; None (and a fault) if there is none. ``stem``: what the header is called."""
    shapes = f"a folder with {stem}.toml and tables, an .xlsx workbook or a .json file"
    try:
        if path.is_dir():
            return FolderSource(path, stem, faults)
        if not path.exists():
            left = previous_of(path)
            kept = f"; a process that was killed left it as {left[0]}: rename that to {path.name}" if left else ""
            faults.add(str(path), f"{shapes}; there is nothing at this path{kept}")
            return None
        if path.suffix.lower() in _FILES:
            return _FILES[path.suffix.lower()](path, stem, faults)
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        faults.add(str(path), f"{shapes} ({getattr(error, 'strerror', None) or error})")
        return None
    hint = " (give the folder that holds this file)" if path.suffix.lower() in (".toml", ".csv", ".parquet") else ""
    faults.add(str(path), f"{shapes}{hint}")
    return None
