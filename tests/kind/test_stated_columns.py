"""A column that is declared once, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from mast_opt.core.arrays import positions
from mast_opt.core.errors import InstanceError
from mast_opt.problems.kind.mathprog import stated_sections
from mast_opt.problems.kind.problem_data import Bools, Entities, Ints
from mast_opt.problems.kind.schema import Tables, boolean, integer, label, need
from mast_opt.problems.kind.stated_columns import arrays_of, cells_of, stated


@dataclass(frozen=True, eq=False, repr=False)
class Halls(Entities):
    """Halls of machines."""

    AXIS = "halls"
    COLUMNS = (positions("owner", "halls", "owners"),)

    owner: Ints
    power_kw: Ints = stated(need("power_mw", 1000, maximum=5000, help="power, MW"))
    site: Ints = stated(label("site", "site", required=False), positions("site", "halls", "sites", beyond=1))
    price_micro: Ints = stated(need("usd", 1_000_000, default=0, required=False, later=True), dat="usd_of_hall")
    floors: Ints = stated(integer("floors", default=1, required=False), dat="floors")
    cold: Bools = stated(boolean("cold", default=False, required=False))


HALLS = Halls(("a", "b"), owner=np.array([0, 1]), power_kw=np.array([5, 7]), site=np.array([0, 2]))
AXES = {"site": ("north", "south")}


def test_columns_have_the_name_of_the_field() -> None:
    columns = [(column.name, column.attribute) for column in Halls.columns()]
    assert columns == [
        ("power_mw", "power_kw"),
        ("site", "site"),
        ("usd", "price_micro"),
        ("floors", "floors"),
        ("cold", "cold"),
    ]


def test_a_field_that_is_left_out_has_the_default() -> None:
    assert (HALLS.price_micro.tolist(), HALLS.floors.tolist(), HALLS.cold.tolist()) == ([0, 0], [1, 1], [False, False])
    assert HALLS.cold.dtype == np.bool_


def test_a_field_is_checked_by_the_limits_of_its_column() -> None:
    with pytest.raises(InstanceError, match="power_kw"):
        Halls(("a",), owner=np.array([0]), power_kw=np.array([5001]), site=np.array([0]))


def test_from_tables_and_back() -> None:
    values, present = cells_of(HALLS, AXES)
    assert {name: mask.tolist() for name, mask in present.items()} == {"site": [True, False], "usd": [False, False]}
    assert values["site"].tolist() == [0, 0]
    found = arrays_of(Halls, Tables(AXES, {"halls": values}, {"halls": present}), "halls")
    assert Halls(("a", "b"), owner=HALLS.owner, **found) == HALLS


def test_parameters_of_the_mod_are_those_that_are_not_the_default() -> None:
    halls = Halls(
        ("a", "b"),
        owner=HALLS.owner,
        power_kw=HALLS.power_kw,
        site=HALLS.site,
        price_micro=np.array([0, 2_500_000]),
        floors=np.array([3, 1]),
    )
    text = ["\n".join(lines) for lines in stated_sections(halls, np.array(halls.labels))]
    assert "usd_of_hall" in text[0]
    assert "'b' 2.5" in text[0]
    assert "'a'" not in text[0]
    assert "'a' 3" in text[1]
