"""Problems, plans and answers as data frames: ``to_tables``."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

import polars as pl

from mast_opt.core.arguments import a_text
from mast_opt.core.errors import UsageError
from mast_opt.planner.analysis.explain import Explanation
from mast_opt.planner.analysis.marginal_values import Marginals
from mast_opt.planner.analysis.pareto import Frontier
from mast_opt.planner.analysis.periods import Periods
from mast_opt.planner.analysis.plan_diff import Diff
from mast_opt.planner.analysis.purchase_question import Purchases
from mast_opt.planner.analysis.whatif import WhatIf
from mast_opt.planner.io.tables import Planned, labelled_tables
from mast_opt.planner.report import change_sections, result_sections
from mast_opt.problems.kind.migration_plan import Order
from mast_opt.problems.kind.presentation import Section
from mast_opt.problems.kind.problem import PlanT, Problem

if TYPE_CHECKING:
    import pandas as pd

Answer: TypeAlias = Diff | Order | Explanation | WhatIf[Any] | Frontier[Any] | Marginals | Periods[Any] | Purchases[Any]

SECTIONS: Mapping[type, Callable[[Any], Sequence[Section]]] = {
    Diff: change_sections.diff_sections,
    Order: change_sections.order_sections,
    Explanation: result_sections.explanation_sections,
    WhatIf: result_sections.whatif_sections,
    Frontier: result_sections.frontier_sections,
    Marginals: result_sections.marginal_sections,
    Periods: result_sections.period_sections,
    Purchases: result_sections.purchase_sections,
}
SIGN = "sign"
"""Name of the column of a difference that says what became of a row: +, − or ~."""


@overload
def to_tables(
    given: Problem[PlanT], plan: PlanT | Planned[PlanT] | None = None, *, frames: Literal["polars"] = "polars"
) -> dict[str, pl.DataFrame]: ...
@overload
def to_tables(
    given: Problem[PlanT], plan: PlanT | Planned[PlanT] | None = None, *, frames: Literal["pandas"]
) -> "dict[str, pd.DataFrame]": ...
@overload
def to_tables(
    given: Problem[PlanT], plan: PlanT | Planned[PlanT] | None = None, *, frames: Literal["arrow"]
) -> dict[str, Any]: ...
@overload
def to_tables(given: Answer, *, frames: Literal["polars"] = "polars") -> dict[str, pl.DataFrame]: ...
@overload
def to_tables(given: Answer, *, frames: Literal["pandas"]) -> "dict[str, pd.DataFrame]": ...
@overload
def to_tables(given: Answer, *, frames: Literal["arrow"]) -> dict[str, Any]: ...
def to_tables(given: Any, plan: Any = None, *, frames: str = "polars") -> dict[str, Any]:
    """The tables of a problem, of a plan for it, or of an answer, as data frames.

    Args:
        given: an instance of any kind; or the answer of ``diff``, ``steps``, ``explain``, ``whatif``, ``pareto``,
            ``marginal_values``, ``plan_periods`` or ``buy``.
        plan: with an instance, a plan for it or the solution of ``solve``; the tables are then those of the plan.
        frames: the library of the data frames: ``polars``, ``pandas`` or ``arrow``. Arrow needs the package pyarrow.

    Returns:
        Name of each table → its frame. Of an instance or a plan, with labels and in the units of files; optional tables
        that the problem does not have and optional columns without a value are left out. ``plan_from_tables`` gives the
        same plan back, and ``from_tables`` the same problem if it gets the same ``name``, ``rules``, ``objective`` and
        ``provenance``, which are in no table. Numbers are integers, floats, or decimals where a float would lose
        digits. Of an answer, the tables that its command prints; the column ``sign`` of a difference is + for an added
        row, − for a removed one and ~ for a changed one.

    Raises:
        UsageError: the solution has no plan, the plan is of another kind, or a package is missing.
        PlanError: the plan is for another instance.
    """
    a_text("frames", frames)
    if frames not in CONVERT:
        raise UsageError(f"frames is {frames!r}; expected one of {', '.join(map(repr, CONVERT))}", argument="frames")
    sections = SECTIONS.get(type(given))
    if sections is None:
        tables = labelled_tables(given, plan)
    elif plan is not None:
        raise UsageError(f"a {type(given).__name__} has its own tables; leave out plan", argument="plan")
    else:
        tables = {section.title: _frame(section) for section in sections(given)}
    return {name: CONVERT[frames](table) for name, table in tables.items()}


def _frame(section: Section) -> pl.DataFrame:
    """Section of an answer as a data frame."""
    columns = list(zip(*section.rows, strict=True)) or [()] * len(section.heads)
    named = {head.title or SIGN: column for head, column in zip(section.heads, columns, strict=True)}
    return pl.DataFrame([pl.Series(name, column, strict=False) for name, column in named.items()])


def _pandas(table: pl.DataFrame) -> "pd.DataFrame":
    """The table for pandas, without Arrow in between. Whole numbers and truth values with empty cells get the nullable
    types, so that no whole number becomes a float."""
    try:
        import pandas as pd
    except ImportError:
        raise UsageError("frames='pandas' needs the package pandas: pip install pandas", argument="frames") from None

    def column(cells: pl.Series) -> "pd.Series[Any]":
        empty = cells.null_count() > 0
        whole, flag = cells.dtype.is_integer(), cells.dtype == pl.Boolean
        dtype = "Int64" if whole and empty else "boolean" if flag and empty else None
        return pd.Series(cells.to_list() if dtype or not cells.dtype.is_numeric() else cells.to_numpy(), dtype=dtype)

    return pd.DataFrame({cells.name: column(cells) for cells in table.get_columns()})


def _arrow(table: pl.DataFrame) -> object:
    """Data frame as an Arrow table. Raises UsageError without pyarrow."""
    try:
        return table.to_arrow()
    except ImportError:
        raise UsageError("frames='arrow' needs the package pyarrow: pip install pyarrow", argument="frames") from None


CONVERT: Mapping[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda table: table,
    "pandas": _pandas,
    "arrow": _arrow,
}
"""Name of a library → how a polars frame becomes one of its frames."""
