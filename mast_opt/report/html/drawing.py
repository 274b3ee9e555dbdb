"""Charts as SVG. Vega-Lite draws them here, so that the page needs no script and no network to show them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mast_opt.charts import Bars, Chart, Flows, HeatMap, Scale
from mast_opt.report.html.flows import MOST_FLOWS, ribbons
from mast_opt.report.html.palette import SERIES, color, heat_legend
from mast_opt.report.html.specs import MOST_ROWS, Spec, bars, heat_map, lines

WIDE, HALF, PHONE = 960, 468, 326
"""Widths of a drawing: the whole page, one of two beside each other, a phone."""


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
    """What the drawing does not show, and where it is; empty if it shows all."""


def draw(chart: Chart) -> Picture:
    """The picture of a chart."""
    if isinstance(chart, HeatMap):
        sides = [("before", chart.before), ("after", chart.after)]
        known = [(caption, values) for caption, values in sides if values is not None]
        width = HALF if len(known) > 1 else WIDE
        drawings = [
            Drawing(caption, svg(heat_map(chart, values, width)), svg(heat_map(chart, values, PHONE)))
            for caption, values in known
        ]
        legend = [(color(f"heat-{step}"), words) for step, words in enumerate(heat_legend(chart.scale))]
        return _picture(chart, drawings, legend, len(chart.rows), MOST_ROWS)
    if isinstance(chart, Bars):
        drawings = [Drawing("", svg(bars(chart, WIDE)), svg(bars(chart, PHONE)))]
        legend = [(color(f"series-{at % SERIES}"), name) for at, (name, _) in enumerate(chart.series)]
        if chart.scale is not Scale.AMOUNT:
            legend.append((color("bad"), "all there is"))
        return _picture(chart, drawings, legend, len(chart.categories), MOST_ROWS)
    if isinstance(chart, Flows):
        drawings = [Drawing("", svg(ribbons(chart, WIDE)), svg(ribbons(chart, PHONE)))]
        return _picture(chart, drawings, [], len(chart.flows), MOST_FLOWS)
    drawings = [Drawing("", svg(lines(chart, WIDE)), svg(lines(chart, PHONE)))]
    legend = [(color(f"series-{1 + at % (SERIES - 1)}"), name) for at, (name, _) in enumerate(chart.lines)]
    return _picture(chart, drawings, legend, 0, 0)


def _picture(
    chart: Chart, drawings: Sequence[Drawing], legend: Sequence[tuple[str, str]], count: int, most: int
) -> Picture:
    left_out = f"{most} of {count:,} are drawn; the table has all." if count > most else ""
    return Picture(chart.title, chart.note, tuple(drawings), tuple(legend), left_out)


def svg(spec: Spec) -> str:
    """The specification, drawn. It scales with the room that it gets, and every mark tells its value in words.

    Names inside are its own, whatever else is on the page.
    """
    import vl_convert

    stated = json.dumps(spec)
    own = hashlib.sha256(stated.encode()).hexdigest()[:10]
    drawn = re.sub(r'(\bid="|url\(#)', rf"\g<1>x{own}-", vl_convert.vegalite_to_svg(stated))
    return drawn.replace("<svg ", '<svg role="img" ', 1)
