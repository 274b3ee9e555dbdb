"""Charts as SVG. Vega-Lite draws them here, so that the page needs no script and no network to show them."""

import hashlib
import json
import re
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
    count, most = _extent(chart)
    chart = fullest(chart)
    captions, width = [""], WIDE
    if isinstance(chart, HeatMap) and chart.before is not None:
        captions, width = ["before", chart.after_name], HALF
    sizes = zip(captions, specifications(chart, width), specifications(chart, PHONE), strict=True)
    drawings = tuple(Drawing(caption, svg(wide), svg(phone)) for caption, wide, phone in sizes)
    left_out = f"The {most} largest of {count:,} are drawn; the table has all." if count > most else ""
    return Picture(chart.title, chart.note, drawings, tuple(_legend(chart)), left_out)


def specifications(chart: Chart, width: int) -> list[Spec]:
    """The Vega-Lite specification of a chart; of a heat map one for each side."""
    if isinstance(chart, HeatMap):
        return [heat_map(chart, values, width) for values in (chart.before, chart.after) if values is not None]
    if isinstance(chart, Bars):
        return [bars(chart, width)]
    if isinstance(chart, Spans):
        return [spans(chart, width)]
    return [ribbons(chart, width) if isinstance(chart, Flows) else lines(chart, width)]


def _extent(chart: Chart) -> tuple[int, int]:
    """Number of a chart's rows, categories or flows, and the most that are drawn; 0 where all are."""
    if isinstance(chart, Flows):
        return len(chart.flows), MOST_FLOWS
    if isinstance(chart, HeatMap | Spans):
        return len(chart.rows), MOST_ROWS
    return (len(chart.categories), MOST_ROWS) if isinstance(chart, Bars) else (0, 0)


def _legend(chart: Chart) -> list[tuple[str, str]]:
    """Colours of a chart, and what each stands for."""
    if isinstance(chart, HeatMap):
        return [(color(f"heat-{step}"), words) for step, words in enumerate(heat_legend(chart.scale))]
    if isinstance(chart, Bars):
        limit = [] if chart.scale is Scale.AMOUNT else [(color("bad"), "limit")]
        return [*((color(f"series-{at % SERIES}"), name) for at, (name, _) in enumerate(chart.series)), *limit]
    if isinstance(chart, Flows):
        return []
    names = chart.sorts if isinstance(chart, Spans) else [name for name, _ in chart.lines]
    return [(own_color(at), name) for at, name in enumerate(names)]


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


def svg(spec: Spec) -> str:
    """The specification, drawn. It scales with the room that it gets, and every mark states its value in words.

    Names inside are its own, whatever else is on the page.
    """
    import vl_convert

    stated = json.dumps(spec)
    own = hashlib.sha256(stated.encode()).hexdigest()[:10]
    drawn = re.sub(r'(\bid="|url\(#)', rf"\g<1>x{own}-", vl_convert.vegalite_to_svg(stated))
    return drawn.replace("<svg ", '<svg role="img" ', 1)
