"""The page: text, tables and drawings in one file that asks for nothing else."""

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mast_opt.core.wording import UNKNOWN, amounts, as_shown, gap_text, gpus, percent, plain, ratio
from mast_opt.planner.report.html.content import ABSOLUTE_GAP, GAP, Report, headline
from mast_opt.planner.report.html.palette import DARK, LIGHT
from mast_opt.problems.kind.presentation import Form, Head, Section

HERE = Path(__file__).parent
MOST_ROWS = 2_000
"""Rows of a table that a page holds."""

Cell = tuple[str, str, str]
"""(class, exact value or empty, text)"""


def page(report: Report) -> str:
    """The whole page of a plan as HTML."""
    return rendered(
        "page.html.j2",
        report=report,
        rest="in the plan's tables",
        opened=(),
        figures=_figures(report),
        metrics=_metrics(report),
        terms=_terms(report),
        plain=plain,
        source_of_bound=_source_of_bound(report),
        versions=_versions(report),
    )


def _figures(report: Report) -> list[tuple[str, str]]:
    """The figures of the headline as text; the gap in percent and in units of the objective."""
    stated = dict(headline(report))
    objective, bound, gap, _ = (
        None if isinstance(value, str) else value
        for value in (stated.get(name) for name in ("objective", "bound", GAP, ABSOLUTE_GAP))
    )
    texts = {name: value if isinstance(value, str) else plain(value) for name, value in stated.items()}
    if bound is not None and report.bound_checked is False:
        texts["bound"] += " (not checked)"
    if gap is not None:
        texts[GAP] = gap_text(gap / 100, objective, bound)
    return [("gap" if name == GAP else name, text) for name, text in texts.items() if name != ABSOLUTE_GAP]


def rendered(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template shows
    """A page with the style, script and tables of all pages."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    there = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    style = _theme(LIGHT, DARK) + (HERE / "page.css").read_text(encoding="utf-8")
    text = there.get_template(template).render(
        safe=Markup,
        style=Markup(style),
        script=Markup((HERE / "page.js").read_text(encoding="utf-8")),
        table=_table,
        slug=slug,
        **values,
    )
    return text if text.endswith("\n") else text + "\n"


def slug(title: str) -> str:
    """A section's title as a name in an address."""
    return "-".join("".join(one if one.isalnum() else " " for one in title.lower()).split())


def _theme(light: Mapping[str, str], dark: Mapping[str, str]) -> str:
    """The colours: light unless the reader's system or the switch on the page says dark."""

    def listed(theme: Mapping[str, str]) -> str:
        return "".join(f"--{name}:{value};" for name, value in theme.items())

    return (
        f":root{{color-scheme:light;{listed(light)}}}\n"
        f"@media (prefers-color-scheme: dark){{:root:not([data-theme=light]){{color-scheme:dark;{listed(dark)}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{listed(dark)}}}\n"
    )


def _source_of_bound(report: Report) -> str:
    """Words of the report on who has checked the bound."""
    if report.fields.get("bound") is None:
        return ""
    if report.bound_checked:
        return ", and the bound from the certificate in the plan's folder or from the instance"
    unchecked = "; it was not checked" if report.bound_checked is False else ""
    return f", except for the bound, which is what plan.toml says{unchecked}"


def _metrics(report: Report) -> list[dict[str, Any]]:
    """Each metric of the reported plan after and before, and whether either is shown, since it is not 0."""
    after = as_shown(report.verdict.metrics)
    before = {} if report.before is None else as_shown(report.before.metrics)
    rows = [
        {
            "name": name,
            "words": in_words(name),
            "value": repr(value),
            "text": plain(after[name]),
            "before": None if name not in before else plain(before[name]),
        }
        for name, value in report.verdict.metrics.items()
    ]
    return [{**row, "shown": row["text"] != "0" or row["before"] not in (None, "0")} for row in rows]


def in_words(name: str) -> str:
    """``remote_tb_per_day`` in a report as remote TB per day."""
    return " ".join(
        {"tb": "TB", "gpus": "GPUs", "gpu": "GPU", "rru": "RRU", "usd": "USD"}.get(word, word)
        for word in name.split("_")
    )


def _terms(report: Report) -> list[dict[str, Any]]:
    """Value, weight and contribution of each term of the reported plan that counts or is not 0, the largest
    contribution first.
    """
    terms, weights = report.verdict.terms, report.weights
    parts = {name: value * weights.get(name, 0.0) for name, value in terms.items()}
    total = sum(parts.values())
    before = {} if report.before is None else report.before.terms
    names = sorted(terms, key=lambda name: -parts[name])
    return [
        {
            "name": name,
            "unit": report.units.get(name, ""),
            "value": repr(terms[name]),
            "text": plain(terms[name]),
            "before": plain(before[name]) if name in before else None,
            "weight": plain(weights.get(name, 0.0)),
            "part": plain(parts[name]),
            "share": percent(parts[name] / total, 1) if total and weights.get(name) else "",
            "width": f"{100 * parts[name] / total:.2f}" if total else "0",
        }
        for name in names
        if terms[name] or weights.get(name) or before.get(name)
    ]


def _table(section: Section) -> dict[str, Any]:
    """A section with every cell as text, next to the exact value of each number."""
    shown = section.rows[:MOST_ROWS]
    columns = [_column([row[at] for row in shown], head) for at, head in enumerate(section.heads)]
    return {
        "heads": [(head.title, "" if head.form is Form.TEXT else "n") for head in section.heads],
        "rows": list(zip(*columns, strict=True)) if columns else [],
        "more": max(0, len(section.rows) - MOST_ROWS),
    }


def _column(values: list[Any], head: Head) -> list[Cell]:
    """Cells of a column of the report: style, exact value and text of each."""
    form = head.form
    if form is Form.TEXT:
        return [("", "", UNKNOWN if value is None else str(value)) for value in values]
    numbers = [None if value is None else float(value) for value in values]
    if form is Form.RATIO:
        texts = [UNKNOWN if number is None else ratio(number, head.marks) for number in numbers]
    elif form is Form.GPUS:
        texts = [*map(gpus, numbers)]
    elif form is Form.FILL:
        texts = [percent(number, 1) for number in numbers]
    else:
        texts = [*map(plain, numbers)] if form is Form.FIGURE else amounts(numbers)
    tops = {Form.RATIO: 1.0, Form.FILL: 1.0}
    return [
        (
            "n bad" if number is not None and form in tops and number > tops[form] else "n",
            "" if number is None else repr(number),
            text,
        )
        for number, text in zip(numbers, texts, strict=True)
    ]


def _versions(report: Report) -> str:
    """Versions of the solver's packages in the report, and parameters that were set."""
    stated = report.fields.get("versions")
    known = dict(stated) if isinstance(stated, Mapping) else {}
    known.setdefault("mast-opt", version("mast-opt"))
    params = report.fields.get("params")
    changed = params.items() if isinstance(params, Mapping) else ()
    set_here = f"; parameters {', '.join(f'{name} = {value}' for name, value in changed)}" if changed else ""
    return ", ".join(f"{name} {number}" for name, number in known.items()) + set_here
