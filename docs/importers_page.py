"""Writes ``importers.md``, what each importer does with each field, from the declarations that the importers use.

python docs/importers_page.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mast_opt.live.hosts.kueue.fields import FORMATS as KUEUE
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.planner.importers import IMPORTERS
from mast_opt.planner.importers.base import Importer
from mast_opt.planner.importers.fields import Format, Tried

PAGE = Path(__file__).with_name("importers.md")
HEAD = """# What importers read

Each importer, and what becomes of each field of its inputs: read, ignored, ignored with a warning, or refused. This
page is generated from the declarations that the importers use (`python docs/importers_page.py`). How to import is on
the pages [import](how-to/import.md), [simulate](how-to/simulate.md) and [Kueue](how-to/kueue.md). A path such as
`spec.podSets[].count` goes through objects and lists.
"""


def page() -> str:
    """The whole page."""
    importers: dict[str, Importer[Any]] = {**IMPORTERS, **TRACE_IMPORTERS}
    shown: dict[str, str] = {}
    lines = [HEAD, *_tried([*(one for item in importers.values() for one in item.formats), *KUEUE])]
    for name, importer in importers.items():
        lines += [f"## `{name}`\n", f"{importer.help[:1].upper()}{importer.help[1:]}.\n"]
        for one in importer.formats:
            if shown.setdefault(one.title, name) != name:
                lines.append(f"{one.title}: see `{shown[one.title]}`.\n")
            else:
                lines += _format(one)
    lines.append("## Kueue\n\n`simulate --kueue`, `dispatch` and `serve --host kueue`.\n")
    lines += [line for one in KUEUE for line in _format(one)]
    return "\n".join(lines)


def _tried(formats: list[Format]) -> Iterator[str]:
    yield "## Real versions tried\n"
    yield "| version | what |\n|---|---|"
    found: dict[str, list[Tried]] = {}
    for one in (tried for of in formats for tried in of.tried):
        found.setdefault(one.version, []).append(one)
    for version, of in sorted(found.items()):
        what = dict.fromkeys(part.strip() for one in of for part in one.what.split(","))
        yield f"| {version} | {', '.join(what)} |"
    yield "\nOther versions and formats were tried with files made by hand after their definitions.\n"


def _format(one: Format) -> Iterator[str]:
    yield f"### {one.title}\n"
    yield "| field | what becomes of it | |\n|---|---|---|"
    for field in one.fields:
        yield f"| `{_cell(field.name)}` | {field.use.value} | {_cell(field.help)} |"
    yield f"| all others | {one.rest.value} | |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
