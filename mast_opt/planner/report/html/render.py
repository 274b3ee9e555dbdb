"""Charts as SVG. Vega-Lite draws them here, so that the page needs no script and no network to show them."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mast_opt.planner.report.html.palette import SERIES, color, heat_legend, own_color
from mast_opt.planner.report.html.sankey import MOST_FLOWS, ribbons
from mast_opt.planner.report.html.vega_specs import MOST_ROWS, Spec, bars, heat_map, lines, spans
from mast_opt.problems.kind.presentation import Bars, Chart, Flows, HeatMap, Scale, Spans, Values

WIDE, HALF, PHONE = 960, 468, 326
"""Widths of a drawing: the whole page, one of two side by side, a phone."""


@dataclass(frozen=True)
class Drawing:
    """One SVG in two sizes."""

    caption: str
    wide: str
    phone: str


@dataclass(frozen=True)
class Picture:
    """A chart, drawn."""

    title: str
    note: str
    drawings: tuple[Drawing, ...]
    legend: tuple[tuple[str, str], ...]
    """(colour, what it stands for)"""
    left_out: str
    """Words on what the drawing leaves out, and where it is; empty if it shows all."""


def draw(chart: Chart) -> Picture:
    """The picture of a chart: of a long one the fullest rows or categories."""
    count = (
        len(chart.rows)
        if isinstance(chart, HeatMap | Spans)
        else len(chart.categories)
        if isinstance(chart, Bars)
        else 0
    )
    chart = fullest(chart)
    if isinstance(chart, HeatMap):
        sides = [("before", chart.before), (chart.after_name, chart.after)]
        known = [(caption, values) for caption, values in sides if values is not None]
        width = HALF if len(known) > 1 else WIDE
        drawings = [
            Drawing(
                caption if len(known) > 1 else "",
                svg(heat_map(chart, values, width)),
                svg(heat_map(chart, values, PHONE)),
            )
            for caption, values in known
        ]
        legend = [(color(f"heat-{step}"), words) for step, words in enumerate(heat_legend(chart.scale))]
        return _picture(chart, drawings, legend, count, MOST_ROWS)
    if isinstance(chart, Bars):
        drawings = [Drawing("", svg(bars(chart, WIDE)), svg(bars(chart, PHONE)))]
        legend = [(color(f"series-{at % SERIES}"), name) for at, (name, _) in enumerate(chart.series)]
        if chart.scale is not Scale.AMOUNT:
            legend.append((color("bad"), "limit"))
        return _picture(chart, drawings, legend, count, MOST_ROWS)
    if isinstance(chart, Spans):
        drawings = [Drawing("", svg(spans(chart, WIDE)), svg(spans(chart, PHONE)))]
        legend = [(own_color(at), name) for at, name in enumerate(chart.sorts)]
        return _picture(chart, drawings, legend, count, MOST_ROWS)
    if isinstance(chart, Flows):
        drawings = [Drawing("", svg(ribbons(chart, WIDE)), svg(ribbons(chart, PHONE)))]
        return _picture(chart, drawings, [], len(chart.flows), MOST_FLOWS)
    drawings = [Drawing("", svg(lines(chart, WIDE)), svg(lines(chart, PHONE)))]
    legend = [(own_color(at), name) for at, (name, _) in enumerate(chart.lines)]
    return _picture(chart, drawings, legend, 0, 0)


def fullest(chart: Chart) -> Chart:
    """The chart with its ``MOST_ROWS`` rows or categories of the largest values, in their own order."""
    if isinstance(chart, HeatMap):
        kept = _largest(chart.after)
        before = None if chart.before is None else tuple(chart.before[row] for row in kept)
        after, rows = tuple(chart.after[row] for row in kept), tuple(chart.rows[row] for row in kept)
        return replace(chart, rows=rows, before=before, after=after)
    if isinstance(chart, Bars):
        kept = _largest(tuple(zip(*(values for _, values in chart.series), strict=True)))
        series = tuple((name, tuple(values[at] for at in kept)) for name, values in chart.series)
        return replace(chart, categories=tuple(chart.categories[at] for at in kept), series=series)
    if isinstance(chart, Spans):
        lengths = [sum(end - begin for begin, end, *_ in parts) for _, parts in chart.rows]
        longest = sorted(sorted(range(len(lengths)), key=lambda row: -lengths[row])[:MOST_ROWS])
        return replace(chart, rows=tuple(chart.rows[row] for row in longest))
    return chart


def _largest(rows: tuple[Values, ...]) -> list[int]:
    """Positions of a chart's rows with the largest values, ascending."""
    tops = [max((value for value in row if value is not None), default=0.0) for row in rows]
    return sorted(sorted(range(len(rows)), key=lambda row: -tops[row])[:MOST_ROWS])


def _picture(
    chart: Chart, drawings: Sequence[Drawing], legend: Sequence[tuple[str, str]], count: int, most: int
) -> Picture:
    """Picture of a chart with its drawings and legend, and words on what is left out."""
    left_out = f"The {most} largest of {count:,} are drawn; the table has all." if count > most else ""
    return Picture(chart.title, chart.note, tuple(drawings), tuple(legend), left_out)


def svg(spec: Spec) -> str:
    """The specification, drawn. It scales with the room that it gets, and every mark states its value in words.

    Names inside are its own, whatever else is on the page.
    """
    import vl_convert

    stated = json.dumps(spec)
    own = hashlib.sha256(stated.encode()).hexdigest()[:10]
    drawn = re.sub(r'(\bid="|url\(#)', rf"\g<1>x{own}-", vl_convert.vegalite_to_svg(stated))
    return drawn.replace("<svg ", '<svg role="img" ', 1)
