"""The bound of a certificate holds for any prices inside their boxes, and for no others is there a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.errors import PlanError
from mast_opt.server_assignment import ServerAssignment
from mast_opt.server_assignment.certificate import Certificate, Relaxed, certified_bound
from mast_opt.server_assignment.floors import floors
from mast_opt.server_assignment.formulation import base
from mast_opt.server_assignment.measure import Measure
from tests.server_assignment.brute import Brute
from tests.server_assignment.strategies import problems
from tests.server_assignment.support import examples, proven

NAMES = [item.name for item in fields(Certificate)]


def random_prices(problem: ServerAssignment, seed: int) -> Certificate:
    """Prices inside their boxes, of the sizes that matter and many of them 0."""
    rng = np.random.default_rng(seed)
    r = Relaxed(problem, problem.objective.weights)

    def drawn(count: int, most: float) -> np.ndarray:
        share = np.clip(rng.uniform(-0.5, 1.5, count), 0, 1)
        return np.asarray(most * share * rng.choice([0.0, 0.01, 0.1, 1.0], count))

    affinities = len(problem.affinity_reservation)
    return r.within(
        Certificate(
            once=drawn(len(problem.stocks), max(r.shortfall * 2000, 10 * r.use)),
            survive=drawn(len(problem.reservations), 1.5 * r.shortfall),
            loss=drawn(len(problem.switchboards), r.shortfall),
            affinity_most=drawn(affinities, r.shortfall / 1000),
            affinity_least=drawn(affinities, r.shortfall / 1000),
        )
    )


@examples(80)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_any_prices_bound_the_optimum(problem: ServerAssignment, seed: int) -> None:
    bound = certified_bound(problem, random_prices(problem, seed).arrays())
    best = proven(base(problem).mip).objective
    assert best is not None
    event(f"bound above 0: {bound > 0}")
    assert bound <= best + 1e-7 * max(1.0, abs(best))


@examples(60)
@given(problem=problems(servers=5, reservations=2), seed=st.integers(0, 2**32))
def test_any_prices_bound_what_enumeration_finds(problem: ServerAssignment, seed: int) -> None:
    best = Brute(problem).optimum()
    assert certified_bound(problem, random_prices(problem, seed).arrays()) <= best + 1e-9 * max(1.0, abs(best))


@examples(60)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_whole_servers_only_tighten_the_bound(problem: ServerAssignment, seed: int) -> None:
    prices, r = random_prices(problem, seed), Relaxed(problem, problem.objective.weights)
    relaxed, _ = r.solved(prices)
    whole = r.whole(prices, *r.solved(prices))
    event(f"tighter: {bool((whole > relaxed + 1e-9).any())}")
    assert (whole >= relaxed - 1e-9 * np.maximum(np.abs(relaxed), 1)).all()


@examples(100)
@given(data=st.data(), problem=problems())
def test_no_assignment_is_below_the_floors(data: st.DataObject, problem: ServerAssignment) -> None:
    owner = data.draw(st.lists(st.integers(0, len(problem.reservations)), min_size=8, max_size=8))
    plan = Measure(problem, np.array(owner)[: len(problem.servers)])
    floor = floors(problem)
    below = (problem.buffer == 0) & (plan.lost < floor.least)
    event(f"some reservation is below: {bool(below.any())}")
    assert (plan.short[below] >= floor.short[below]).all()


@pytest.fixture
def problem() -> ServerAssignment:
    made: ServerAssignment = mast_opt.generate(
        "server-assignment", "features", servers=30, reservations=5, datacenters=2, seed=3
    )
    return made


def edited(problem: ServerAssignment, name: str, change: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    arrays: dict[str, Any] = random_prices(problem, 4).arrays()
    return arrays | {name: change(arrays[name].copy())}


JUNK: dict[str, Callable[[np.ndarray], Any]] = {
    "negative": lambda price: price - 1.0,
    "nan": lambda price: np.full_like(price, np.nan),
    "infinite": lambda price: np.full_like(price, np.inf),
    "overflowing": lambda price: np.full_like(price, 1e300),
    "of another shape": lambda price: price[:-1],
    "a single number": lambda price: np.array(1.0),
    "text": lambda price: price.astype(str),
    "whole numbers": lambda price: price.astype(np.int64),
}


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("name", NAMES)
def test_junk_prices_are_refused_by_name(problem: ServerAssignment, name: str, junk: str) -> None:
    with pytest.raises(PlanError, match=name):
        certified_bound(problem, edited(problem, name, JUNK[junk]))


@pytest.mark.parametrize("name", NAMES)
def test_a_lacking_array_is_named(problem: ServerAssignment, name: str) -> None:
    arrays = random_prices(problem, 4).arrays()
    del arrays[name]
    with pytest.raises(PlanError, match=f"an array called {name}"):
        certified_bound(problem, arrays)


def test_prices_out_of_their_boxes_are_refused() -> None:
    """Where today breaks nothing, capacity is worth no more than what its lack costs."""
    calm = mast_opt.generate("server-assignment", "fresh", servers=30, reservations=6, datacenters=2, seed=3)
    short = Measure(calm, calm.owner).short
    assert short.any()  # nobody has a server: what today lacks is a limit, so its price has no box
    for name in ("loss", "affinity_most"):
        with pytest.raises(PlanError, match=f"{name}|affinity"):
            certified_bound(calm, edited(calm, name, lambda price: price + 1.0))
