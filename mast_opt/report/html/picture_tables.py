"""The table behind each picture."""

from __future__ import annotations

from mast_opt.kind.kind import Form, Head, Section
from mast_opt.kind.presentation import Bars, Chart, Flows, HeatMap, Scale, Values

_FORMS = {Scale.RATIO: Form.RATIO, Scale.FILL: Form.FILL, Scale.AMOUNT: Form.AMOUNT}


def table_of(chart: Chart) -> Section:
    """The figures of a chart, all of them."""
    if isinstance(chart, HeatMap):
        return _heat(chart)
    if isinstance(chart, Bars):
        heads = [Head(chart.category_name)]
        unit = f", {chart.unit}" if chart.unit else ""
        heads += [Head(f"{name}{unit}", _FORMS[chart.scale]) for name, _ in chart.series]
        rows = [(category, *(values[at] for _, values in chart.series)) for at, category in enumerate(chart.categories)]
        return Section(chart.title, tuple(heads), tuple(rows))
    if isinstance(chart, Flows):
        heads = [Head(chart.source_name), Head(chart.target_name), Head(chart.unit, Form.AMOUNT)]
        largest_first = sorted(chart.flows, key=lambda flow: -flow[2])
        return Section(chart.title, tuple(heads), tuple(largest_first))
    heads = [Head("line"), Head(chart.x_name, Form.AMOUNT), Head(chart.y_name, Form.AMOUNT)]
    return Section(chart.title, tuple(heads), tuple((name, x, y) for name, points in chart.lines for x, y in points))


def _heat(chart: HeatMap) -> Section:
    """A row a cell that there is."""
    form = _FORMS[chart.scale]
    nothing: tuple[Values, ...] = tuple((None,) * len(chart.columns) for _ in chart.rows)
    before = nothing if chart.before is None else chart.before
    heads = [Head(chart.row_name), Head(chart.column_name)]
    heads += [Head("before", form)] if chart.before is not None else []
    heads.append(Head("after", form))
    rows = [
        (row, column, *((before[r][k],) if chart.before is not None else ()), chart.after[r][k])
        for r, row in enumerate(chart.rows)
        for k, column in enumerate(chart.columns)
        if chart.after[r][k] is not None or before[r][k] is not None
    ]
    return Section(chart.title, tuple(heads), tuple(rows))
