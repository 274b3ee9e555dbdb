"""From one plan to another: what differs, and in which order to do it."""

from mast_opt.changes.differences import Change, Diff, TableDiff, diff
from mast_opt.changes.ordering import steps

__all__ = ["Change", "Diff", "TableDiff", "diff", "steps"]
