"""Draws architecture.svg, the picture of docs/architecture.md: the decisions in time, and the path of one decision.

.venv/bin/python docs/images/draw_architecture.py
"""

from __future__ import annotations

from html import escape
from pathlib import Path

TARGET = Path(__file__).resolve().parent / "architecture.svg"
WIDTH, HEIGHT = 920, 560
PAPER, INK, LINE = "#ffffff", "#1f2937", "#64748b"
SLOW, FAST, CHECK, OUTSIDE = "#dbeafe", "#dcfce7", "#fef3c7", "#f1f5f9"


def box(x: int, y: int, width: int, height: int, fill: str, title: str, *lines: str) -> str:
    """A rounded box with a bold title and lines of small text under it."""
    middle = x + width / 2
    top = y + height / 2 - 8 * len(lines) + 5
    texts = [f'<text x="{middle}" y="{top}" font-weight="600">{escape(title)}</text>']
    texts += [
        f'<text x="{middle}" y="{top + 17 * n}" font-size="12">{escape(line)}</text>'
        for n, line in enumerate(lines, start=1)
    ]
    shape = f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{LINE}"/>'
    return shape + "".join(texts)


def arrow(points: str, label: str = "", at: tuple[int, int] = (0, 0), anchor: str = "middle") -> str:
    """A line with a head through ``points``, and its label."""
    line = f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="1.5" marker-end="url(#head)"/>'
    if not label:
        return line
    return line + f'<text x="{at[0]}" y="{at[1]}" font-size="12" text-anchor="{anchor}">{escape(label)}</text>'


def heading(y: int, text: str) -> str:
    """The title of a part of the picture."""
    return f'<text x="24" y="{y}" font-size="16" font-weight="700" text-anchor="start">{escape(text)}</text>'


def picture() -> str:
    """The whole picture as SVG."""
    parts = [
        heading(34, "The decisions in time"),
        box(24, 56, 250, 76, SLOW, "Data placement", "daily: where replicas and", "recurring workloads are"),
        box(335, 56, 250, 76, SLOW, "Server assignment", "half-hourly: which servers", "form which cluster"),
        box(646, 56, 250, 76, SLOW, "Resource allocation", "each round: how much every", "running job gets"),
        box(180, 196, 250, 76, FAST, "Job placement", "seconds: where each job runs,", "what it displaces"),
        box(491, 196, 250, 76, FAST, "Task reassignment", "minutes: which machine runs", "which process"),
        arrow("149,132 149,234 176,234", "replicas", (141, 190), "end"),
        arrow("400,132 400,166 330,166 330,192", "servers of clusters", (392, 160), "end"),
        arrow("771,132 771,166 405,166 405,192", "shares, rounds", (590, 160)),
        arrow("430,234 487,234", "starts", (458, 226)),
        arrow("305,272 305,300 60,300 60,136", "the log of events: what ran, waited and read", (312, 296), "start"),
        heading(346, "The path of one decision"),
        box(24, 366, 118, 62, OUTSIDE, "Files", "xlsx, csv,", "json, frames"),
        box(174, 366, 118, 62, OUTSIDE, "Problem", "checked, frozen,", "integers"),
        box(324, 366, 130, 62, SLOW, "Formulation", "arrays, compared", "with the .mod"),
        box(486, 366, 130, 62, SLOW, "Backends", "HiGHS, CP-SAT,", "SCIP, CBC, …"),
        box(324, 470, 292, 62, FAST, "Heuristics", "tetris, exhaustive, ras, twine:", "plan, bound, certificate"),
        box(648, 418, 118, 62, CHECK, "Verifier", "shares nothing", "with solvers"),
        box(798, 418, 98, 62, OUTSIDE, "Answer", "plan, report,", "steps"),
        arrow("142,397 170,397"),
        arrow("292,397 320,397"),
        arrow("454,397 482,397"),
        arrow("616,397 707,397 707,414"),
        arrow("233,428 233,501 320,501"),
        arrow("616,501 707,501 707,484"),
        arrow("766,449 794,449"),
    ]
    head = (
        f'<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,0 L8,4 L0,8 z" fill="{LINE}"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'font-family="system-ui, sans-serif" font-size="14" text-anchor="middle" fill="{INK}" role="img">'
        f"<title>The decisions in time, and the path of one decision from files to an answer</title>"
        f'<defs>{head}</defs><rect width="{WIDTH}" height="{HEIGHT}" fill="{PAPER}"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    TARGET.write_text(picture(), encoding="utf-8")
    print(TARGET)
