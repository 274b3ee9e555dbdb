"""The bound of a certificate holds for any prices inside their boxes, and for no others is there a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.errors import PlanError
from mast_opt.core.solve_result import Status
from mast_opt.problems.server_assignment import ServerAssignment
from mast_opt.problems.server_assignment.formulation.formulation import base
from mast_opt.problems.server_assignment.ras.lagrangian.integer_bound import integer_bound
from mast_opt.problems.server_assignment.ras.lagrangian.integer_subproblem import least_cost
from mast_opt.problems.server_assignment.ras.lagrangian.relaxation import Relaxed, SearchStopped
from mast_opt.problems.server_assignment.ras.params import RasParams
from mast_opt.problems.server_assignment.verification.certificate import Certificate, Prices
from mast_opt.problems.server_assignment.verification.certificate_bound import certified_bound
from mast_opt.problems.server_assignment.verification.measures import Measure
from tests.examples import examples
from tests.server_assignment.brute import Brute
from tests.server_assignment.strategies import problems
from tests.server_assignment.support import proven

NAMES = [item.name for item in fields(Prices)] + ["counted_to", "other_of", "other_survive"]


def random_prices(r: Relaxed, seed: int) -> Prices:
    """Prices inside their boxes, of the sizes that matter and many of them 0."""
    problem, rng = r.problem, np.random.default_rng(seed)

    def drawn(count: int, most: float) -> np.ndarray:
        share = np.clip(rng.uniform(-0.5, 1.5, count), 0, 1)
        return np.asarray(most * share * rng.choice([0.0, 0.01, 0.1, 1.0], count))

    affinities = len(problem.affinities)
    return r.within(
        Prices(
            once=drawn(len(problem.stocks), max(r.shortfall * 2000, 10 * r.use)),
            survive=drawn(len(problem.reservations), 1.5 * r.shortfall),
            loss=drawn(len(problem.switchboards), r.shortfall),
            affinity_most=drawn(affinities, r.shortfall / 1000),
            affinity_least=drawn(affinities, r.shortfall / 1000),
        )
    )


def random_proof(problem: ServerAssignment, seed: int) -> tuple[float, Certificate]:
    """What the search says such prices prove, whole servers counted, and the certificate of it."""
    r = Relaxed(problem, problem.objective.weights)
    prices = random_prices(r, seed)
    least, certificate = integer_bound(r, prices, r.solved(prices), r.pairs.today[r.order], RasParams().integer_bound)
    return r.bound(prices, least), certificate


def scale(problem: ServerAssignment, prices: Prices) -> float:
    """The size of the largest sums, which round."""
    sums = prices.once @ problem.stocks.size + prices.survive @ problem.reservations.asked_mrru
    return float(sums) + sum(problem.objective.weights.values()) + 1.0


def random_certificate(problem: ServerAssignment, seed: int) -> dict[str, Any]:
    return random_proof(problem, seed)[1].arrays()


@examples(80)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_the_checker_proves_what_the_search_says(problem: ServerAssignment, seed: int) -> None:
    """Two computations that share no code: one compiled, one with numpy."""
    said, certificate = random_proof(problem, seed)
    event(f"whole servers: {bool(certificate.counted_to.any())}")
    checked = certified_bound(problem, certificate.arrays())
    assert checked >= said - 1e-9 * scale(problem, certificate.prices)


@examples(60)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_in_fractions_both_say_the_same(problem: ServerAssignment, seed: int) -> None:
    r = Relaxed(problem, problem.objective.weights)
    prices = random_prices(r, seed)
    said = max(0.0, r.bound(prices, r.solved(prices)[0]))
    checked = certified_bound(problem, Certificate.in_fractions(prices).arrays())
    assert checked == pytest.approx(said, abs=1e-9 * scale(problem, prices))


@examples(60)
@given(data=st.data(), problem=problems(servers=5, reservations=2), seed=st.integers(0, 2**32))
def test_whatever_is_tampered_with_no_bound_passes_the_optimum(
    data: st.DataObject, problem: ServerAssignment, seed: int
) -> None:
    """Prices scaled, moved about or drawn again, and whole servers counted to anywhere: refused, or still a bound."""
    arrays = random_certificate(problem, seed)
    rng = np.random.default_rng(seed)
    name = data.draw(st.sampled_from([name for name in NAMES if len(arrays[name])] or ["once"]))
    way = data.draw(st.sampled_from(["scaled", "shuffled", "one more"]))
    old = arrays[name]
    if way == "scaled":
        new = (old * rng.choice([0, 0.5, 2, 10], len(old))).astype(old.dtype)
    elif way == "shuffled":
        new = rng.permutation(old)
    else:
        new = old + (rng.integers(0, 5000, len(old)) if old.dtype == np.int64 else rng.random(len(old)))
    try:
        bound = certified_bound(problem, arrays | {name: new})
    except PlanError:
        event("refused")
        return
    event(f"changed: {bool((new != old).any())}")
    best = Brute(problem).optimum()
    assert bound <= best + 1e-9 * max(1.0, abs(best))


@examples(50)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_any_prices_bound_the_optimum(problem: ServerAssignment, seed: int) -> None:
    bound = certified_bound(problem, random_certificate(problem, seed))
    best = proven(base(problem).mip).objective
    assert best is not None
    event(f"bound above 0: {bound > 0}")
    assert bound <= best + 1e-7 * max(1.0, abs(best))


@examples(60)
@given(problem=problems(servers=5, reservations=2), seed=st.integers(0, 2**32))
def test_any_prices_bound_what_enumeration_finds(problem: ServerAssignment, seed: int) -> None:
    best = Brute(problem).optimum()
    assert certified_bound(problem, random_certificate(problem, seed)) <= best + 1e-9 * max(1.0, abs(best))


@examples(60)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_whole_servers_only_tighten_the_bound(problem: ServerAssignment, seed: int) -> None:
    r = Relaxed(problem, problem.objective.weights)
    prices = random_prices(r, seed)
    relaxed, _ = r.solved(prices)
    whole, _ = integer_bound(r, prices, r.solved(prices), r.pairs.today[r.order], RasParams().integer_bound)
    event(f"tighter: {bool((whole > relaxed + 1e-9).any())}")
    assert (whole >= relaxed - 1e-9 * np.maximum(np.abs(relaxed), 1)).all()


@examples(60)
@given(problem=problems(), seed=st.integers(0, 2**32), whole=st.integers(0, 2))
def test_a_proof_that_is_halted_keeps_what_it_has(problem: ServerAssignment, seed: int, whole: int) -> None:
    """Asked to stop in the middle of the reservation after the first so many."""
    r = Relaxed(problem, problem.objective.weights)
    prices = random_prices(r, seed)
    solved = r.solved(prices)
    counted = iter([least_cost] * whole)

    def halting(*given: Any) -> Any:
        one = next(counted, None)
        if one is None:
            raise SearchStopped
        return one(*given)

    with patch(
        "mast_opt.problems.server_assignment.ras.lagrangian.integer_bound.least_cost", side_effect=halting
    ) as asked:
        least, certificate = integer_bound(r, prices, solved, r.pairs.today[r.order], RasParams().integer_bound)
    event(f"halted: {asked.call_count > whole}, tighter: {bool((least > solved[0] + 1e-9).any())}")
    assert (least >= solved[0] - 1e-9 * np.maximum(np.abs(solved[0]), 1)).all()
    bound = r.bound(prices, least)
    assert certified_bound(problem, certificate.arrays()) >= bound - 1e-6 * scale(problem, prices)


def test_nothing_to_pay_is_proven() -> None:
    """No bound is below 0, also where rounding is allowed for; what is said is certified."""
    problem = mast_opt.generate("server-assignment", "standard", servers=30, reservations=4, datacenters=1, seed=1)
    weights = dict.fromkeys(problem.objective.weights, 0.0) | {"moves_in_use": 1.0}
    problem = replace(problem, objective=replace(problem.objective, weights=weights))
    solution = mast_opt.solve(problem, "ras", iterations=1, threads=1, gap=0.0)
    assert (solution.objective, solution.bound, solution.status) == (0.0, 0.0, Status.OPTIMAL)
    assert solution.certificate is not None
    assert certified_bound(problem, solution.certificate.arrays()) >= 0.0


@pytest.fixture
def problem() -> ServerAssignment:
    made: ServerAssignment = mast_opt.generate(
        "server-assignment", "features", servers=30, reservations=5, datacenters=2, seed=3
    )
    return made


def edited(problem: ServerAssignment, name: str, change: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    arrays: dict[str, Any] = random_certificate(problem, 4)
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


WHOLE = ("counted_to", "other_of")
"""Arrays of whole numbers."""
WHOLE_JUNK: dict[str, Callable[[np.ndarray], Any]] = {
    "negative": lambda number: number - 10**9,
    "too many": lambda number: number + 10**15,
    "fractions": lambda number: number.astype(float),
    "a single number": lambda number: np.array(1),
    "text": lambda number: number.astype(str),
}


@pytest.mark.parametrize("junk", WHOLE_JUNK)
@pytest.mark.parametrize("name", WHOLE)
def test_junk_counts_are_refused_by_name(problem: ServerAssignment, name: str, junk: str) -> None:
    with pytest.raises(PlanError, match=name):
        certified_bound(problem, edited(problem, name, WHOLE_JUNK[junk]))


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in WHOLE])
def test_junk_prices_are_refused_by_name(problem: ServerAssignment, name: str, junk: str) -> None:
    with pytest.raises(PlanError, match=name):
        certified_bound(problem, edited(problem, name, JUNK[junk]))


@pytest.mark.parametrize("name", NAMES)
def test_a_lacking_array_is_named(problem: ServerAssignment, name: str) -> None:
    arrays = random_certificate(problem, 4)
    del arrays[name]
    with pytest.raises(PlanError, match=f"an array called {name}"):
        certified_bound(problem, arrays)


def test_prices_out_of_their_boxes_are_refused() -> None:
    """Where today breaks nothing, capacity is worth no more than what its lack costs."""
    calm = mast_opt.generate("server-assignment", "fresh", servers=30, reservations=6, datacenters=2, seed=3)
    short = Measure(calm, calm.servers.owner).short
    assert short.any()  # nobody has a server: what today lacks is a limit, so its price has no box
    for name in ("loss", "affinity_most"):
        with pytest.raises(PlanError, match=f"{name}|affinity"):
            certified_bound(calm, edited(calm, name, lambda price: price + 1.0))


def test_prices_of_losses_share_the_price_of_the_buffer() -> None:
    """The pool's buffer is one amount for all switchboards: each price may be that of the buffer, their sum not."""
    pooled = mast_opt.generate("server-assignment", "standard", servers=60, reservations=6, datacenters=2, seed=3)
    assert pooled.pool is not None
    assert len(pooled.switchboards) > 1
    relaxed = Relaxed(pooled, pooled.objective.weights)
    arrays = Certificate.in_fractions(random_prices(relaxed, 4)).arrays()
    each = (relaxed.buffer + arrays["survive"][pooled.pool]) / len(pooled.switchboards)
    assert each > 0
    certified_bound(pooled, arrays | {"loss": np.full(len(pooled.switchboards), each)})
    with pytest.raises(PlanError, match="loss"):
        certified_bound(pooled, arrays | {"loss": np.full(len(pooled.switchboards), 1.001 * each)})
