"""The documentation as a site, built by ``python3 make.py docs``.

The pages are read in the repository too. So menus are made here, and links that lead out of the documentation (to a
program, an instance) become the name of what they lead to; a link that leads nowhere stays, and fails the build.
"""

from __future__ import annotations

import re
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent

project = "mast-opt"
author = "the mast-opt authors"
version = release = version_of("mast-opt")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["examples/**"]  # packages of their own, with pages for who copies them
nb_execution_mode = "off"  # the tests run the notebooks; the site shows what they kept
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "undoc-members": False, "exclude-members": "__init__, __new__"}
napoleon_numpy_docstring = False
nitpicky = False
highlight_language = "text"

html_theme = "furo"
html_title = f"mast-opt {version}"
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

MENU: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Start",
        (
            "tutorial.md",
            "tutorial-research.md",
            "tutorial-scheduler.md",
            "architecture.md",
            "glossary.md",
            "limits.md",
            "security.md",
        ),
    ),
    ("Notebooks", ("notebooks",)),
    ("How to", ("how-to",)),
    ("Problems", ("problems", "models.md", "instances.md")),
    ("Solvers", ("heuristics", "wrong-answers.md", "trusted-base.md", "benchmarks.md", "benchmarks", "research")),
    (
        "Schedulers",
        (
            "papers.md",
            "policies.md",
            "policies-sizes.md",
            "policies-queues.md",
            "policies-in-time.md",
            "reservations.md",
        ),
    ),
    ("Reference", ("api.md", "tables.md", "importers.md", "groups.md", "plug-in-classes.md", "policies-reference.md")),
    ("Decisions", ("decisions/README.md", "decisions")),
)
"""Section → pages, or folders of pages."""
PAGES = (".md", ".ipynb")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def setup(app: Any) -> None:
    app.connect("source-read", _prepared)
    app.connect("autodoc-process-docstring", _keep, priority=1)
    app.connect("autodoc-process-docstring", _restored, priority=900)


_KEPT: dict[str, list[str]] = {}
"""Attribute → its docstring, as it is written."""


def _keep(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Napoleon takes what stands before the first colon of an attribute's docstring for its type; here it does not."""
    if what in ("attribute", "property"):
        _KEPT[name] = list(lines)


def _restored(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = _KEPT.pop(name, lines)


def _prepared(app: Any, name: str, source: list[str]) -> None:
    """A page as the site needs it."""
    folder = (DOCS / name).parent
    source[0] = _LINK.sub(lambda link: _repaired(link, folder), source[0])
    if name == "index":
        source[0] += "".join(_menu(title, entries) for title, entries in MENU)


def _menu(title: str, entries: tuple[str, ...]) -> str:
    pages: list[str] = []
    for entry in entries:
        path = DOCS / entry
        found = sorted(page for page in path.rglob("*") if page.suffix in PAGES) if path.is_dir() else [path]
        pages += [page.relative_to(DOCS).with_suffix("").as_posix() for page in found]
    return "\n".join(["", ":::{toctree}", ":hidden:", f":caption: {title}", "", *dict.fromkeys(pages), ":::", ""])


def _repaired(link: re.Match[str], folder: Path) -> str:
    image, text, target = link[1], link[2], link[3]
    if "://" in target or image:
        return link[0]
    path = (folder / target).resolve()
    if not path.exists() or (path.is_relative_to(DOCS) and path.suffix in PAGES):
        return link[0]
    name = path.relative_to(ROOT).as_posix()
    return text if text.strip("`/") == name else f"{text} (`{name}`)"
