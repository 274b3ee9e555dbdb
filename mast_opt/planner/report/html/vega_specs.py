"""Each chart as a Vega-Lite specification. Widths are in pixels; colours are CSS variables."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from mast_opt.core.dates import date_of
from mast_opt.core.wording import noticed, percent, plain, ratio
from mast_opt.planner.report.html.palette import SERIES, color, heat, own_color
from mast_opt.problems.kind.presentation import Bars, HeatMap, Lines, Scale, Spans, Values

Spec = dict[str, Any]

FONT = "Arial, 'Liberation Sans', Helvetica, sans-serif"
CHARACTER = 0.62
"""Width of an average character, as a share of its size, in the wider of the fonts that a reader may have."""
SECOND_MS, DAY_MS = 1000, 86_400_000
MOST_ROWS = 24
"""Rows or categories that are drawn; the table behind a chart has all."""
MOST_POINTS, MOST_DOTS = 200, 60
"""Points of a line, and points of all lines while they are drawn large."""
ROW, BAR = 26, 13
TITLE_GAP = 14
"""Pixels between the title of an upright axis and its numbers, which are wider in some readers' fonts."""
NARROW = 420
"""Up to this width a chart is for a phone: shorter labels, and not everything twice."""


def value_text(value: float | None, scale: Scale, unit: str = "") -> str:
    """A value as people read it in a chart; a ratio above 1 is never shown as 1."""
    if value is None:
        return ""
    if scale is Scale.FILL:
        return percent(value, 0 if value >= 0.1 or value == 0 else 1)
    if scale is Scale.RATIO:
        return ratio(value) if value > 1 else f"{value:.2f}"
    return plain(noticed(value, unit))


def heat_map(chart: HeatMap, values: Sequence[Values], width: int) -> Spec:
    """One side of a heat map: a cell for each row and column, with its number in it."""
    rows, columns = chart.rows, chart.columns
    down = _names("row", rows, width)
    cell = (width - down["axis"]["minExtent"]) / max(len(columns), 1)
    upright = all(text_width(name, 12) + 6 < cell for name in columns)
    cells = []
    for row, cells_of_row in zip(rows, values, strict=True):
        for column, value in zip(columns, cells_of_row, strict=True):
            step = None if value is None else heat(value, chart.scale)
            text = value_text(value, chart.scale)
            cells.append(
                {
                    "row": row,
                    "column": column,
                    "fill": color("empty" if step is None else f"heat-{step}"),
                    "ink": color("soft" if step is None else f"heat-ink-{step}"),
                    "text": text,
                    "words": f"{row}, {column}: {text or 'none there'}",
                }
            )
    along: Spec = {"field": "column", "type": "nominal", "sort": None, "title": None}
    along["axis"] = {"orient": "top", "labelAngle": 0 if upright else -40, "labelLimit": 130, "labelOverlap": False}
    marks: list[Spec] = [
        {
            "mark": {"type": "rect", "cornerRadius": 3, "stroke": color("card"), "strokeWidth": 2},
            "encoding": {"fill": _own("fill"), "description": {"field": "words"}},
        },
        {
            "mark": {"type": "text", "aria": False, "fontSize": 12 if cell > 40 else 10},
            "encoding": {"text": {"field": "text"}, "color": _own("ink")},
        },
    ]
    spec = spec_of({"layer": marks, "encoding": {"x": along, "y": down}}, cells, width)
    return {**spec, "height": {"step": ROW}}


def bars(chart: Bars, width: int) -> Spec:
    """Horizontal bars, grouped by category; a line where all of something is used."""
    categories = chart.categories
    names = [name for name, _ in chart.series]
    rows: list[Spec] = [
        {
            "category": category,
            "series": name,
            "value": values[at],
            "fill": color(f"series-{position % SERIES}"),
            "text": value_text(values[at], chart.scale, chart.unit),
            "words": f"{category}, {name}: {value_text(values[at], chart.scale, chart.unit)} {chart.unit}".strip(),
        }
        for at, category in enumerate(categories)
        for position, (name, values) in enumerate(chart.series)
        if values[at] is not None
    ]
    top = max((float(row["value"]) for row in rows), default=0.0)
    share = chart.scale is not Scale.AMOUNT
    end = max(1.0, top) if share else top or 1.0
    along: Spec = {"field": "value", "type": "quantitative", "scale": {"domain": [0, end * 1.12], "nice": False}}
    along["title"] = chart.unit or None
    ticks = 5 if width > NARROW else 3
    if not share and all(float(row["value"]).is_integer() for row in rows):
        ticks = min(ticks, int(end))  # no half jobs
    along["axis"] = {"format": "%" if chart.scale is Scale.FILL else ",~r", "tickCount": ticks}
    encoding = {"x": along, "y": _names("category", categories, width), "yOffset": {"field": "series", "sort": names}}
    number: Spec = {"type": "text", "align": "left", "dx": 4, "fontSize": 10, "aria": False}
    halo = {**number, "stroke": color("card"), "strokeWidth": 3, "strokeJoin": "round"}
    labels = {"text": {"field": "text"}}
    marks: list[Spec] = [
        {
            "mark": {"type": "bar", "cornerRadiusEnd": 2},
            "encoding": {"fill": _own("fill"), "description": {"field": "words"}},
        },
        {"mark": halo, "encoding": labels},
        {"mark": {**number, "color": color("soft")}, "encoding": labels},
    ]
    layers: list[Spec] = [{"layer": marks, "encoding": encoding}]
    if share:
        line = {"type": "rule", "color": color("bad"), "strokeDash": [4, 3], "aria": False}
        all_there_is = {"field": "x", "type": "quantitative"}
        layers.insert(0, {"data": {"values": [{"x": 1}]}, "mark": line, "encoding": {"x": all_there_is}})
    spec = spec_of({"layer": layers}, rows, width)
    return {**spec, "height": max(len(categories), 1) * (BAR * len(names) + 10)}


def spans(chart: Spans, width: int) -> Spec:
    """A bar from begin to end for each span."""
    fills = {sort: own_color(at) for at, sort in enumerate(chart.sorts)}
    zero, step = 1, 1
    if chart.first is not None:  # milliseconds, as the scale of dates has them
        zero, step = int(datetime(*chart.first.timetuple()[:3], tzinfo=UTC).timestamp()) * SECOND_MS, DAY_MS
    cells: list[Spec] = [
        {
            "row": name,
            "begin": zero + step * begin,
            "end": zero + step * end,
            "fill": fills[sort],
            "words": f"{name}, {date_of(chart.first, int(begin)) or f'{chart.unit} {begin + 1:g}'}: {words}",
        }
        for name, parts in chart.rows
        for begin, end, words, sort in parts
    ]
    last = max((int(end) for _, parts in chart.rows for _, end, *_ in parts), default=0) + 1
    most = 12 if width > NARROW else 5
    axis: Spec = {"orient": "top", "tickCount": min(last, most), "format": "d", "grid": True}
    if chart.first is not None:
        axis |= {"tickCount": {"interval": "day", "step": -(-last // most)}, "format": "%-d %b"}
    encoding: Spec = {
        "x": {
            "field": "begin",
            "type": "quantitative" if chart.first is None else "temporal",
            "title": chart.unit if chart.first is None else None,
            "axis": axis,
            "scale": {
                **({} if chart.first is None else {"type": "utc"}),
                "domain": [zero, zero + step * (max(last, 2) - 1)],
                "nice": False,
            },
        },
        "x2": {"field": "end"},
        "y": _names("row", [name for name, _ in chart.rows], width),
        "fill": _own("fill"),
        "description": {"field": "words"},
    }
    mark = {"type": "bar", "cornerRadius": 3, "stroke": color("card"), "height": 14}
    spec = spec_of({"mark": mark, "encoding": encoding}, cells, width)
    return {**spec, "height": {"step": ROW}}


def lines(chart: Lines, width: int) -> Spec:
    """Steps: each value holds until the next one."""
    points = [
        {
            "line": name,
            "x": x,
            "y": y,
            "stroke": own_color(at),
            "words": f"{name}: {plain(y)} after {plain(x)} {chart.x_name}",
        }
        for at, (name, dots) in enumerate(chart.lines)
        for x, y in thinned(dots)
    ]
    encoding: Spec = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "title": chart.x_name,
            "axis": {"grid": False, "tickCount": 6 if width > NARROW else 3},
        },
        "y": {
            "field": "y",
            "type": "quantitative",
            "title": chart.y_name,
            "axis": {"titlePadding": TITLE_GAP},
            "scale": _range([y for _, dots in chart.lines for _, y in dots], from_zero=chart.from_zero),
        },
        "detail": {"field": "line"},
        "stroke": _own("stroke"),
    }
    marks: list[Spec] = [
        {"mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 2, "aria": False}},
        {
            "mark": {"type": "point", "filled": True, "size": 34 if len(points) < MOST_DOTS else 8, "opacity": 1},
            "encoding": {"fill": _own("stroke"), "description": {"field": "words"}},
        },
    ]
    spec = spec_of({"layer": marks, "encoding": encoding}, points, width)
    return {**spec, "height": 220 if width > NARROW else 180}


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Some of a chart's many points, evenly, the first and the last among them."""
    step = -(-len(points) // MOST_POINTS)
    return [*points[::step], *([points[-1]] if (len(points) - 1) % step else [])]


def _names(field: str, names: Sequence[str], width: int) -> Spec:
    """An upright axis of names, in their order."""
    return {"field": field, "type": "nominal", "sort": None, "title": None, "axis": label_axis(names, width)}


def label_axis(names: Sequence[str], width: int) -> Spec:
    """An axis of names with room for them in whichever font the reader has."""
    size, most = (12, 190) if width > NARROW else (11, 128)
    room = min(most, max((text_width(name, size) for name in names), default=0))
    return {"labelLimit": most / 1.1, "labelFontSize": size, "minExtent": room + 8}


def text_width(text: str, size: int) -> float:
    """Approximate width of a text in a chart, in pixels."""
    return CHARACTER * size * len(text)


def _range(values: Sequence[float], *, from_zero: bool) -> Spec:
    """The scale of a chart's axis. Where it need not begin at 0, a line on which all values are equal has room on both
    sides; where it does, one on which all are 0 lies at the bottom.
    """
    if from_zero:
        return {"zero": True} if any(values) else {"domain": [0, 1]}
    if not values or min(values) < max(values):
        return {"zero": False, "padding": 8}
    room = abs(values[0]) / 10 or 1.0
    return {"domain": [values[0] - room, values[0] + room], "nice": False}


def _own(field: str) -> Spec:
    """A chart's colour that the data name themselves."""
    return {"field": field, "type": "nominal", "scale": None, "legend": None}


def spec_of(body: Spec, values: Sequence[Spec], width: int) -> Spec:
    """A whole specification around marks and their data."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": width,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "padding": 0,
        "background": None,
        "data": {"values": list(values)},
        "config": CONFIG,
        **body,
    }


CONFIG: Spec = {
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": color("ink"),
        "titleColor": color("soft"),
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "domain": False,
        "ticks": False,
        "gridColor": color("line"),
        "labelPadding": 6,
        "labelOverlap": "greedy",
    },
    "axisY": {"labelOverlap": False},
    "axisXQuantitative": {"labelColor": color("soft"), "labelFontSize": 11},
    "axisYQuantitative": {"labelColor": color("soft"), "labelFontSize": 11},
}
