"""Tables and picture of FGD's experiment from two made-up results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.fgd import MARKS, published
from benchmarks.fgd_page import Curves, curves_of, draw, live_table, rules_table


def made_up(pod_list: str, method: str, end: float, seed: int) -> dict[str, object]:
    figures = {f"at_{mark}": min(mark, end) for mark in MARKS}
    source = {"program": "fgd.py", "data": f"openb_pod_list_{pod_list}.csv.gz"}
    return {
        "entry": "made up",
        "instance": pod_list,
        "source": source,
        "contestant": {"name": method},
        "seed": seed,
        "figures": figures,
    }


@pytest.fixture
def curves(tmp_path: Path) -> Curves:
    """Curves of the live fleet on one list and of a rule, two seeds, on another; what was generated has none."""
    results = [
        made_up("default", "fleet", 96.0, 42),
        made_up("cpu050", "fgd", 94.0, 42),
        made_up("cpu050", "fgd", 95.0, 43),
        made_up("default", "fleet", 0.0, 44) | {"source": {"program": "fgd.py"}},
    ]
    file = tmp_path / "fgd.jsonl"
    file.write_text("".join(json.dumps(result) + "\n" for result in results))
    return curves_of(file)


def test_curves_are_means_over_seeds(curves: Curves) -> None:
    assert {name: set(of) for name, of in curves.items()} == {"cpu050": {"fgd"}, "default": {"fleet"}}
    assert curves["cpu050"]["fgd"][-1] == 94.5
    assert curves["default"]["fleet"] == [min(mark, 96.0) for mark in MARKS]


def test_tables_put_replays_next_to_published_means(curves: Curves) -> None:
    known = published("default")
    live = live_table(curves).splitlines()
    assert live[-2] == "| cpu050 | 93.79 | 95.21 | – | – | – |"
    assert (
        live[-1] == f"| default | {known['best-fit']:.2f} | {known['fgd']:.2f} | 96.00 | – | {96 - known['fgd']:+.2f} |"
    )
    assert rules_table(curves).splitlines() == [
        "| pod list | fgd |",
        "| --- | --: |",
        "| cpu050 | 94.50 (95.21) |",
        "| default | – (95.39) |",
    ]


def test_means_over_all_lists_need_every_list() -> None:
    values = [[float(end)] * len(MARKS) for end in (95, 97)]
    curves = {name: {"fleet": ours, "fleet best-fit": ours} for name, ours in zip(("cpu050", "default"), values)}
    gain = 96 - (published("cpu050")["fgd"] + published("default")["fgd"]) / 2
    assert live_table(curves).splitlines()[-1].endswith(f"| 96.00 | 96.00 | {gain:+.2f} |")


def test_the_picture_has_a_panel_for_each_list(curves: Curves, tmp_path: Path) -> None:
    draw(curves, tmp_path / "fgd.svg")
    drawn = (tmp_path / "fgd.svg").read_text()
    for words in ("cpu050", "default", "fleet", "fgd", "fgd, published, at 130%", "GPUs asked for, % of all GPUs"):
        assert f"<!-- {words} -->" in drawn
    assert "<!-- fleet best-fit -->" not in drawn
    draw(curves, tmp_path / "again.svg")
    assert (tmp_path / "again.svg").read_text() == drawn
