"""A plan as one self-contained page or picture."""

from mast_opt.planner.report.html.content import Report, report
from mast_opt.planner.report.html.write import write_report

__all__ = ["Report", "report", "write_report"]
