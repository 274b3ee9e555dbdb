"""The charts of a report as one picture, for slides."""

import re
from collections.abc import Iterable
from html import escape
from textwrap import wrap

from mast_opt.core.wording import plain
from mast_opt.planner.report.html.content import Report
from mast_opt.planner.report.html.palette import LIGHT, color, in_theme
from mast_opt.planner.report.html.render import WIDE, Picture
from mast_opt.planner.report.html.vega_specs import FONT

MARGIN, GAP = 32, 24
SCALE = 2
"""Pixels of the picture for each unit of the drawing."""
NOTE_CHARACTERS = 150
"""Characters of a note that fit a line of the sheet."""
_SIZE = re.compile(r'<svg [^>]*?width="([0-9.]+)" height="([0-9.]+)"')


def png(report: Report) -> bytes:
    """The picture: title, objective, then every chart below the one before. Always in the light theme."""
    import vl_convert

    broken = len(report.verdict.violations)
    words = f"{report.kind}, objective {plain(report.verdict.objective)}"
    words += f", breaks {broken:,} limits" if broken else ", no limit broken"
    drawn = sheet((picture for picture, _ in report.pictures), report.title, words)
    return bytes(vl_convert.svg_to_png(in_theme(drawn, LIGHT), scale=SCALE))


def sheet(pictures: Iterable[Picture], title: str = "", words: str = "") -> str:
    """All pictures below one another in one SVG, under a title and a line of words where they are given."""
    parts: list[str] = []
    y = float(MARGIN) - GAP
    if title:
        y = MARGIN + 46.0
        parts.append(_text(MARGIN, y - 22, title, 24, "ink", bold=True))
        parts.append(_text(MARGIN, y, words, 13, "soft"))
    for picture in pictures:
        y += GAP + 18
        parts.append(_text(MARGIN, y, picture.title, 17, "ink", bold=True))
        for line in wrap(" ".join((picture.note, picture.left_out)).strip(), NOTE_CHARACTERS):
            y += 18
            parts.append(_text(MARGIN, y, line, 12, "soft"))
        y += 8
        x, lowest = float(MARGIN), y
        for mark, name in picture.legend:
            parts.append(f'<rect x="{x}" y="{y + 4}" width="12" height="12" rx="2" fill="{mark}"/>')
            parts.append(_text(x + 17, y + 14, name, 12, "soft"))
            x += 30 + 7 * len(name)
        if picture.legend:
            y += 24
        x = float(MARGIN)
        for drawing in picture.drawings:
            top = y
            if drawing.caption:
                parts.append(_text(x, y + 14, drawing.caption, 13, "soft"))
                top += 22
            width, height = _size(drawing.wide)
            parts.append(drawing.wide.replace("<svg ", f'<svg x="{x}" y="{top}" ', 1))
            x += width + GAP
            lowest = max(lowest, top + height)
        y = lowest
    width, height = WIDE + 2 * MARGIN, y + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}">'
        f'<rect width="100%" height="100%" fill="{color("card")}"/>{"".join(parts)}</svg>'
    )


def _size(drawing: str) -> tuple[float, float]:
    """Width and height of a drawing (SVG). Raises ValueError where it states none."""
    found = _SIZE.search(drawing)
    if found is None:
        raise ValueError("a drawing without width and height")
    return float(found[1]), float(found[2])


def _text(x: float, y: float, words: str, size: int, ink: str, *, bold: bool = False) -> str:
    """A line of text in a picture, as SVG."""
    weight = "600" if bold else "400"
    return (
        f'<text x="{x}" y="{y}" font-family="{escape(FONT)}" font-size="{size}" font-weight="{weight}" '
        f'fill="{color(ink)}">{escape(words)}</text>'
    )
