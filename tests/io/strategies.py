"""Toy problems as the reader would make them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mast_opt.core.arrays import BoolArray, IntArray
from mast_opt.problems.kind.header import Header, Objective
from mast_opt.problems.kind.schema import Tables
from tests.io.toy import KIND, Toy

_WILD = st.sampled_from(
    [
        'a "b"',
        "c, d",
        "\\",
        "=1+1",
        "007",
        "1e5",
        "null",
        "NaN",
        "true",
        "#x",
        "Zürich",
        "中",
        "🙂",
        "a'b",
        "-",
        "_x0041_",
        "http://a",
    ]
)
LABELS = _WILD | st.text(
    st.characters(exclude_categories=("C", "Z"), include_characters=" "), min_size=1, max_size=12
).map(str.strip).filter(bool)

QUANTITIES = st.integers(0, 2**20) | st.integers(0, 2**59) | st.sampled_from([0, 1, 10**15, 123456789012345678])
FINITE = st.floats(0, 1e12) | st.sampled_from([0.1, 1 / 3, 1e-7, 0.0])


def headers() -> st.SearchStrategy[Header]:
    order = st.just(()) | st.permutations(list(KIND.terms)).map(lambda terms: tuple(terms[:2]))
    return st.builds(
        Header,
        kind=st.just("toy"),
        name=st.text(st.characters(exclude_categories=["C"]), min_size=1).map(str.strip).filter(bool),
        objective=st.builds(
            Objective,
            weights=st.fixed_dictionaries(dict.fromkeys(KIND.terms, FINITE)),
            tier_weights=st.dictionaries(st.integers(0, 9), FINITE, max_size=3),
            peak_levels=st.dictionaries(st.integers(0, 9), FINITE, max_size=3),
            order=order,
        ),
        rules=st.fixed_dictionaries(
            {
                "remote_reads": st.sampled_from(["price", "forbid"]),
                "days": st.sampled_from([Fraction(1), Fraction(3, 2), Fraction(1, 3), Fraction(7, 1000)]),
            }
        ),
        provenance=st.sampled_from(["", "made up", 'two\nlines, "quoted"\ttab']),
    )


@st.composite
def tables(draw: st.DrawFn) -> Tables:
    def names(most: int) -> list[str]:
        return draw(st.lists(LABELS, min_size=1, max_size=most, unique=True))

    def column(cells: st.SearchStrategy[int], count: int) -> IntArray:
        return np.array(draw(st.lists(cells, min_size=count, max_size=count)), np.int64)

    def mask(count: int) -> BoolArray:
        return np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)

    sites, items, colours = names(4), names(5), names(3)
    pairs = [(i, s) for i in range(len(items)) for s in range(len(sites))]
    held = draw(st.lists(st.sampled_from([(*pair, c) for pair in pairs for c in range(-1, len(colours))]), unique=True))
    ruled = draw(st.none() | st.lists(st.sampled_from(pairs), unique=True))
    item_colour = column(st.integers(-1, len(colours) - 1), len(items))
    hold_colour = np.array([c for _, _, c in held], np.int64)
    mentioned = [c for c in dict.fromkeys([*item_colour.tolist(), *hold_colour.tolist()]) if c >= 0]
    rank = {c: n for n, c in enumerate(mentioned)}

    def ranked(cells: IntArray) -> IntArray:
        return np.array([rank.get(c, 0) for c in cells.tolist()], np.int64)

    limited, capped = mask(len(sites)), mask(len(items))
    values: dict[str, dict[str, Any]] = {
        "sites": {
            "site": np.arange(len(sites)),
            "storage_tb": column(QUANTITIES, len(sites)),
            "ingress_tb": np.where(limited, column(QUANTITIES, len(sites)), 0),
            "headroom": column(st.integers(0, 1000), len(sites)),
        },
        "items": {
            "item": np.arange(len(items)),
            "size_tb": column(QUANTITIES, len(items)),
            "memory_gb": column(QUANTITIES, len(items)),
            "tier": column(st.integers(0, 2**62), len(items)),
            "copies_min": column(st.integers(0, 5), len(items)),
            "copies_max": np.where(capped, column(st.integers(0, 5), len(items)), 0),
            "frozen": mask(len(items)),
            "colour": ranked(item_colour),
        },
        "holds": {
            "item": np.array([i for i, _, _ in held], np.int64),
            "site": np.array([s for _, s, _ in held], np.int64),
            "colour": ranked(hold_colour),
            "share": column(st.integers(0, 1000), len(held)),
        },
        "rules": {
            "item": np.array([i for i, _ in ruled or []], np.int64),
            "site": np.array([s for _, s in ruled or []], np.int64),
            "rule": column(st.integers(0, 1), len(ruled or [])),
        },
    }
    present = {
        "sites": {"ingress_tb": limited},
        "items": {"copies_max": capped, "colour": item_colour >= 0},
        "holds": {"colour": hold_colour >= 0},
    }
    axes = {"site": tuple(sites), "item": tuple(items), "colour": tuple(colours[c] for c in mentioned)}
    return Tables(axes, values, present, frozenset({"rules"} if ruled is None else ()))


TOYS = st.builds(Toy, headers(), tables())
