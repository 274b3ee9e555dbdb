"""What the pages of studies have in common: tables between marks, and pictures that are the same each time."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def with_tables(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The page with these tables, each between ``<!-- table: NAME -->`` and ``<!-- end -->``."""

    def block(found: re.Match[str]) -> str:
        return f"{found[1]}\n{tables[found[2]]()}\n{found[3]}"

    return re.sub(r"(<!-- table: ([a-z-]+) -->)\n.*?(<!-- end -->)", block, page, flags=re.DOTALL)


def save(figure: Figure, picture: Path) -> None:
    """Write a picture, whatever layout the settings of the process ask for."""
    figure.set_layout_engine("tight")
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, metadata={"Date": None})


def results_and_docs(description: str | None) -> tuple[Path, Path]:
    """What the command line names: a file of runs, and the folder of the pages. Pictures are SVG from then on."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("docs", type=Path)
    given = parser.parse_args()
    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "mast-opt", "svg.fonttype": "none"})
    return given.results, given.docs
