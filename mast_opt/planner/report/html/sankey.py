"""Flows as ribbons from a column of sources to a column of targets, as wide as what flows."""

from collections.abc import Iterable, Mapping

from mast_opt.core.wording import plain
from mast_opt.planner.report.html.palette import color, own_color
from mast_opt.planner.report.html.vega_specs import NARROW, Spec, spec_of, text_width
from mast_opt.problems.kind.presentation import Flows

MOST_FLOWS = 60
"""Ribbons that are drawn, the largest ones; the table behind the chart has all."""
GAP, NODE = 15.0, 12.0
"""Pixels between nodes (room for a label, however thin they are), and their width."""
POINTS = 16
"""Number of points of a ribbon's edge."""


def ribbons(chart: Flows, width: int) -> Spec:
    """The Vega-Lite specification of a chart of flows."""
    flows = sorted(chart.flows, key=lambda flow: -flow[2])[:MOST_FLOWS]
    out = _totals((source, amount) for source, _, amount in flows)
    into = _totals((target, amount) for _, target, amount in flows)
    most = max(len(out), len(into))
    height = 34 * most + 40
    scale = (height - GAP * most) / sum(out.values())
    left, right = _stack(out, scale), _stack(into, scale)
    size = 12 if width > NARROW else 10
    margin = 8 + min(170.0 if width > NARROW else 116.0, max(text_width(name, size) for name in (*out, *into)))
    x0, x1 = margin + NODE, width - margin - NODE
    hue = {name: own_color(at) for at, name in enumerate(out)}
    points: list[Spec] = []
    at_left, at_right = dict(left), dict(right)
    order = {name: at for at, name in enumerate(into)}
    for number, (source, target, amount) in enumerate(sorted(flows, key=lambda flow: order[flow[1]])):
        a, b, thick = at_left[source], at_right[target], amount * scale
        at_left[source], at_right[target] = a + thick, b + thick
        words = f"{source} → {target}: {plain(amount)} {chart.unit}"
        for step in range(POINTS + 1):
            share = step / POINTS
            top = a + (b - a) * share * share * (3 - 2 * share)
            point = {"x": x0 + (x1 - x0) * share, "y": top, "y2": top + max(thick, 1.0)}
            points.append({**point, "flow": number, "fill": hue[source], "words": words})
    nodes = [
        *_nodes(out, left, scale, margin, hue, chart.unit, "from"),
        *_nodes(into, right, scale, width - margin - NODE, {}, chart.unit, "to"),
    ]
    return {**spec_of(_layers(points, nodes, width, height), [], width), "height": height, "autosize": "none"}


def _totals(amounts: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Amounts of each name in a chart of flows, added up, largest first."""
    total: dict[str, float] = {}
    for name, amount in amounts:
        total[name] = total.get(name, 0.0) + amount
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def _stack(totals: Mapping[str, float], scale: float) -> dict[str, float]:
    """Position of each node in a chart of flows, from the top."""
    place, top = {}, GAP / 2
    for name, amount in totals.items():
        place[name] = top
        top += amount * scale + GAP
    return place


def _nodes(
    totals: Mapping[str, float],
    place: Mapping[str, float],
    scale: float,
    x: float,
    hue: Mapping[str, str],
    unit: str,
    side: str,
) -> list[Spec]:
    """Nodes of one side of a chart of flows: place, colour and words of each."""
    return [
        {
            "x": x,
            "x2": x + NODE,
            "y": place[name],
            "y2": place[name] + max(amount * scale, 1.0),
            "middle": place[name] + amount * scale / 2,
            "label": x - 6 if side == "from" else x + NODE + 6,
            "side": side,
            "name": name,
            "fill": hue.get(name, color("series-0")),
            "words": f"{side} {name}: {plain(amount)} {unit}",
        }
        for name, amount in totals.items()
    ]


def _layers(points: list[Spec], nodes: list[Spec], width: int, height: int) -> Spec:
    """Vega-Lite layers of a chart of flows: ribbons, nodes and labels."""

    def at(field: str, end: int, *, flipped: bool = False) -> Spec:
        scale = {"domain": [end, 0] if flipped else [0, end], "nice": False, "zero": False}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": None}

    own = {"field": "fill", "type": "nominal", "scale": None, "legend": None}
    ribbon = {
        "data": {"values": points},
        "mark": {"type": "area", "opacity": 0.45},
        "encoding": {
            "x": at("x", width),
            "y": at("y", height, flipped=True),
            "y2": {"field": "y2"},
            "detail": {"field": "flow"},
            "fill": own,
            "description": {"field": "words"},
        },
    }
    node = {
        "data": {"values": nodes},
        "mark": {"type": "rect", "cornerRadius": 2},
        "encoding": {
            "x": at("x", width),
            "x2": {"field": "x2"},
            "y": at("y", height, flipped=True),
            "y2": {"field": "y2"},
            "fill": own,
            "description": {"field": "words"},
        },
    }
    labels = [
        {
            "data": {"values": [node for node in nodes if node["side"] == side]},
            "mark": {
                "type": "text",
                "align": align,
                "baseline": "middle",
                "fontSize": 12 if width > NARROW else 10,
                "limit": 160 if width > NARROW else 108,
                "color": color("ink"),
                "aria": False,
            },
            "encoding": {"x": at("label", width), "y": at("middle", height, flipped=True), "text": {"field": "name"}},
        }
        for side, align in (("from", "right"), ("to", "left"))
    ]
    return {"layer": [ribbon, node, *labels]}
