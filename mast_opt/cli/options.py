"""Options that several commands share, spelt and explained the same everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.run import Run

Instance = Annotated[Path, Parameter(help="The instance: a folder of tables, an .xlsx or a .json file.", negative=())]
Json = Annotated[bool, Parameter(help="Print one JSON object on stdout and nothing else.", negative=(), show_default=False)]
Full = Annotated[bool, Parameter(help="Show every row of long tables.", negative=(), show_default=False)]
TheRun = Annotated[Run, Parameter(parse=False)]
