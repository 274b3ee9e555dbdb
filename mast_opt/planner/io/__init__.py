"""Instances and plans in files: folders of CSV or Parquet tables, Excel workbooks, JSON.

Nothing here knows a problem: tables are read, checked and written by the schema that a kind declares.
"""

from mast_opt.planner.io.certificate import read_certificate, read_digests
from mast_opt.planner.io.checksum import checksum
from mast_opt.planner.io.events import read_events
from mast_opt.planner.io.read import PlanReading, Reading, kind_of_file, read, read_plan, read_plan_of, read_start
from mast_opt.planner.io.tables import (
    from_tables,
    from_tables_with_warnings,
    labelled_tables,
    plan_from_tables,
    validate,
)
from mast_opt.planner.io.template import write_template
from mast_opt.planner.io.validation.tables import Rounding
from mast_opt.planner.io.write import FORMATS, check_plan_target, check_target, write, write_plan

__all__ = [
    "FORMATS",
    "PlanReading",
    "Reading",
    "Rounding",
    "check_plan_target",
    "check_target",
    "checksum",
    "from_tables",
    "from_tables_with_warnings",
    "kind_of_file",
    "labelled_tables",
    "plan_from_tables",
    "read",
    "read_certificate",
    "read_digests",
    "read_events",
    "read_plan",
    "read_plan_of",
    "read_start",
    "validate",
    "write",
    "write_plan",
    "write_template",
]
