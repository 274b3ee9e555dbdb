"""The bound of a certificate holds for any prices inside their boxes, and for no others is there a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from mast_opt.core.errors import PlanError
from mast_opt.problems.data_placement import DataPlacement
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.generate import FAMILIES
from mast_opt.problems.data_placement.tetris.kept_certificate import kept_certificate
from mast_opt.problems.data_placement.verification import certificate_bound as certificate_sums
from mast_opt.problems.data_placement.verification.certificate import certified_bound
from mast_opt.problems.data_placement.verification.certificate_bound import LEVELS
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KeptTrees
from tests.data_placement.brute import Brute
from tests.data_placement.certificates import (
    boxes,
    lagrangian,
    random_certificate,
    random_prices,
    random_trees,
    rounded,
)
from tests.data_placement.strategies import problems
from tests.data_placement.support import proven
from tests.examples import examples


@examples(150)
@given(problem=problems(roomy=True), seed=st.integers(0, 2**32))
def test_any_prices_bound_the_optimum(problem: DataPlacement, seed: int) -> None:
    bound = random_certificate(problem, seed).bound(problem)
    best = proven(base(problem).mip).objective
    event(f"feasible: {best is not None}")
    if best is not None:
        assert bound <= best + 1e-7 * max(1.0, abs(best))


@examples(150)
@given(problem=problems(splits=False, roomy=True), seed=st.integers(0, 2**32), room=st.floats(1.0, 2.0))
def test_any_trees_bound_the_optimum_where_cores_are_few(problem: DataPlacement, seed: int, room: float) -> None:
    share = int(problem.workloads.cpu_mcores.sum() * room) // len(problem.regions) + 1
    tight = replace(problem, regions=replace(problem.regions, cpu_mcores=np.full(len(problem.regions), share)))
    trees = random_trees(tight, np.random.default_rng(seed), 10.0)
    certificate = replace(random_certificate(tight, seed), trees=trees)
    best = proven(base(tight).mip).objective
    if best is not None:
        bound = certificate.bound(tight)
        event(f"trees change the bound: {bound != replace(certificate, trees=KeptTrees.none()).bound(tight)}")
        assert bound <= best + 1e-7 * max(1.0, abs(best))
    if all(any(True for _ in Brute(tight, 1).holders_of(i)) for i in range(len(tight.datasets))):
        assert certificate.bound(tight) == pytest.approx(lagrangian(tight, certificate), rel=1e-8, abs=1e-6)


@examples(40)
@given(problem=problems(datasets=2, workloads=3, links=False, splits=False, roomy=True), seed=st.integers(0, 2**32))
def test_any_prices_bound_what_enumeration_finds(problem: DataPlacement, seed: int) -> None:
    best = Brute(problem, parts=1).optimum()
    if best is not None:
        assert random_certificate(problem, seed).bound(problem) <= best + 1e-9 * max(1.0, abs(best))


@examples(150)
@given(problem=problems(roomy=True), seed=st.integers(0, 2**32))
def test_the_bound_is_the_lagrangian(problem: DataPlacement, seed: int) -> None:
    feasible = all(any(True for _ in Brute(problem, 1).holders_of(i)) for i in range(len(problem.datasets)))
    event(f"every dataset has a feasible set of holders: {feasible}")
    if feasible:
        certificate = random_certificate(problem, seed)
        expected = lagrangian(problem, certificate)
        assert certificate.bound(problem) == pytest.approx(expected, rel=1e-8, abs=1e-6)


@examples(40)
@given(problem=problems(roomy=True), seed=st.integers(0, 2**32), rows=st.integers(1, 3))
def test_the_bound_does_not_depend_on_how_many_rows_are_handled_at_a_time(
    problem: DataPlacement, seed: int, rows: int
) -> None:
    prices = random_prices(problem, seed)
    at_once = random_certificate(problem, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate_sums, "CHUNK", rows)
        piecewise = random_certificate(problem, seed)
        assert np.array_equal(piecewise.read_level, at_once.read_level)
        assert piecewise.bound(problem) == pytest.approx(at_once.bound(problem), rel=1e-9, abs=1e-9)
    step = (at_once.read_cap / LEVELS)[:, None]
    inside = np.minimum(prices.read, at_once.read_cap[:, None])
    kept = at_once.read_level * step
    assert (kept <= inside + 1e-9 * step).all()
    assert (kept >= inside - step * (1 + 1e-9)).all()
    assert at_once.worst == pytest.approx(prices.worst, rel=1e-9)
    assert at_once.over == pytest.approx(prices.over, rel=1e-9)


@examples(60)
@given(problem=problems(), seed=st.integers(0, 2**32))
def test_arrays_bring_the_certificate_back(problem: DataPlacement, seed: int) -> None:
    certificate = random_certificate(problem, seed)
    assert certified_bound(problem, certificate.arrays()) == max(0.0, certificate.bound(problem))


@pytest.fixture
def problem() -> DataPlacement:
    return FAMILIES["features"].generate(np.random.default_rng(2), datasets=6, workloads=9, regions=3)


def edited(problem: DataPlacement, name: str, change: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    """A sound certificate's arrays with one of them changed."""
    arrays = random_certificate(problem, 4).arrays()
    return arrays | {name: change(arrays[name].copy())}


PRICES = ("read_cap", "worst", "over", "under", "cpu", "storage", "ingress", "quota")
JUNK: dict[str, Callable[[np.ndarray], Any]] = {
    "negative": lambda price: price - 1.0,
    "nan": lambda price: np.full_like(price, np.nan),
    "infinite": lambda price: np.full_like(price, np.inf),
    "overflowing": lambda price: np.full_like(price, 1e300),
    "of another shape": lambda price: price[..., :-1],
    "a single number": lambda price: np.array(1.0),
    "text": lambda price: price.astype(str),
    "whole numbers": lambda price: price.astype(np.int64),
    "complex": lambda price: price.astype(complex),
}


@pytest.mark.parametrize("junk", JUNK)
@pytest.mark.parametrize("name", PRICES)
def test_junk_prices_are_refused_by_name(problem: DataPlacement, name: str, junk: str) -> None:
    with pytest.raises(PlanError, match=name):
        certified_bound(problem, edited(problem, name, JUNK[junk]))


@pytest.mark.parametrize("name", ["read_cap", "worst", "over", "under"])
def test_prices_out_of_their_boxes_are_refused(problem: DataPlacement, name: str) -> None:
    most = boxes(problem)[{"read_cap": "read"}.get(name, name)].max(initial=0.0)
    with pytest.raises(PlanError, match=f"{name}.*boxes"):
        certified_bound(problem, edited(problem, name, lambda price: price + most * 1.001 + 1e-9))


@pytest.mark.parametrize("name", ["read_cap", "worst", "over", "under"])
def test_every_price_has_a_box_of_its_own(problem: DataPlacement, name: str) -> None:
    weights = {**problem.objective.weights, "remote": 5.0, "peak": 3.0, "overload": 7.0, "idle": 0.5}
    problem = replace(problem, objective=replace(problem.objective, weights=weights, tier_weights={0: 0.25, 1: 2.0}))
    most = boxes(problem)["read"][:, 0] if name == "read_cap" else boxes(problem)[name]
    certificate = random_certificate(problem, 4)
    assert (most > 0).any()
    for cell in map(tuple, np.argwhere(most > 0)):
        price = np.zeros_like(getattr(certificate, name))
        price[cell] = most[cell]
        replace(certificate, **{name: price}).bound(problem)
        price[cell] = most[cell] * 1.001
        with pytest.raises(PlanError, match=f"{name}.*boxes"):
            replace(certificate, **{name: price}).bound(problem)


def test_regions_share_the_box_of_a_peak(problem: DataPlacement) -> None:
    """A peak is paid once: prices of its regions' rows add up to at most its weight."""
    supplied = problem.regions.supply_mgpu > 0
    kind = int(supplied.sum(axis=0).argmax())
    regions = np.flatnonzero(supplied[:, kind])
    assert len(regions) > 1
    certificate = random_certificate(problem, 4)
    price = np.zeros_like(certificate.worst)
    price[regions, kind, 0, 0] = problem.objective.weights["peak"] * problem.tier_weight[0] / len(regions)
    assert price.any()
    replace(certificate, worst=price).bound(problem)
    with pytest.raises(PlanError, match=r"worst.*boxes"):
        replace(certificate, worst=1.001 * price).bound(problem)


@pytest.mark.parametrize("name", ["worst", "over", "under"])
def test_a_price_where_no_gpus_are_supplied_is_refused(problem: DataPlacement, name: str) -> None:
    supply = problem.regions.supply_mgpu.copy()
    supply[0, 0] = 0
    without = replace(problem, regions=replace(problem.regions, supply_mgpu=supply))
    certificate = random_certificate(without, 4)
    price = 0 * getattr(certificate, name)
    replace(certificate, **{name: price}).bound(without)
    price[0, 0] = 1e-30
    with pytest.raises(PlanError, match=f"{name}.*boxes"):
        replace(certificate, **{name: price}).bound(without)


def test_a_price_on_an_unlimited_ingress_is_refused(problem: DataPlacement) -> None:
    free = replace(problem, regions=replace(problem.regions, ingress_limited=np.zeros(len(problem.regions), np.bool_)))
    certificate = random_certificate(problem, 4)
    with pytest.raises(PlanError, match=r"ingress.*boxes"):
        replace(certificate, ingress=np.ones(len(problem.regions))).bound(free)


@pytest.mark.parametrize("size", [0, -1, 2**60])
def test_roundings_by_no_size_are_refused(problem: DataPlacement, size: int) -> None:
    arrays = random_certificate(problem, 4).arrays()
    rows = {
        name: np.concatenate([arrays[name][..., :1], 0 * arrays[name][..., :1]], axis=3) for name in ("worst", "over")
    }
    gang = np.full((len(problem.gpu_types), 1), size)
    with pytest.raises(PlanError, match="gang"):
        certified_bound(problem, arrays | rows | {"gang": gang})


def planted(problem: DataPlacement) -> dict[str, Any]:
    """A sound certificate's arrays, with trees of several reads."""
    rng = np.random.default_rng(3)
    trees = random_trees(problem, rng, 1.0)
    assert (np.diff(trees.start) > 3).any()
    return replace(random_certificate(problem, 4), trees=trees).arrays()


TORN: dict[str, tuple[str, Callable[[np.ndarray], Any]]] = {
    "a root beyond the instance": ("tree_root", lambda root: root + 10_000),
    "a region beyond the instance": ("tree_region", lambda region: region - 10),
    "a limit that there is not": ("tree_limit", lambda limit: limit + 2),
    "a negative price": ("tree_price", lambda price: price - 1.0),
    "a price that is no number": ("tree_price", lambda price: price * np.nan),
    "starts that fall": ("tree_start", lambda start: start[::-1].copy()),
    "starts that end early": ("tree_start", lambda start: np.minimum(start, start[-1] - 1)),
    "a read beyond the instance": ("tree_read", lambda read: read + np.int32(10_000)),
    "reads that do not join": ("tree_read", lambda read: np.roll(read, 1)),
    "children before parents": ("tree_parent", lambda parent: parent + np.int32(10_000)),
    "everything at the root": ("tree_parent", lambda parent: np.full_like(parent, -1)),
    "too few parents": ("tree_parent", lambda parent: parent[:-1]),
    "another type": ("tree_read", lambda read: read.astype(np.int64)),
}


@pytest.mark.parametrize("how", TORN)
def test_what_is_no_tree_is_refused(problem: DataPlacement, how: str) -> None:
    name, change = TORN[how]
    arrays = planted(problem)
    assert certified_bound(problem, arrays) >= 0
    with pytest.raises(PlanError, match="tree_"):
        certified_bound(problem, arrays | {name: change(arrays[name])})


@pytest.mark.parametrize("rows", [2, 3, 7])
def test_trees_are_charged_in_whichever_piece_their_reads_are(problem: DataPlacement, rows: int) -> None:
    problem = problem.with_columns(
        {"regions.cpu_mcores": problem.regions.cpu_mcores // 10, "regions.storage_mb": problem.regions.storage_mb // 10}
    )
    trees = random_trees(problem, np.random.default_rng(3), 1e4)
    certificate = replace(random_certificate(problem, 4), trees=trees)
    charges = certificate_sums.tree_charges(certificate, problem)
    assert charges is not None
    assert (charges.rise > 0).sum() > 3
    at_once = certificate.bound(problem)
    assert at_once != replace(certificate, trees=KeptTrees.none()).bound(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate_sums, "CHUNK", rows)
        assert certificate.bound(problem) == pytest.approx(at_once, rel=1e-9)


def test_a_tree_that_comes_to_something_twice_is_refused(problem: DataPlacement) -> None:
    arrays = planted(problem)
    twice = {name: np.append(arrays[name], arrays[name][-1]) for name in ("tree_read", "tree_parent")} | {
        "tree_start": arrays["tree_start"] + (np.arange(len(arrays["tree_start"])) == len(arrays["tree_root"]))
    }
    with pytest.raises(PlanError, match="once"):
        certified_bound(problem, arrays | twice)


def test_a_tree_of_divisible_work_is_refused(problem: DataPlacement) -> None:
    arrays = planted(problem)
    with pytest.raises(PlanError, match="indivisible"):
        certified_bound(
            problem.with_columns({"workloads.splittable": np.ones(len(problem.workloads), np.bool_)}), arrays
        )


@settings(max_examples=400, deadline=None)
@given(
    size=st.lists(st.integers(1, 70), min_size=1, max_size=5),
    run=st.lists(st.integers(0, 4), min_size=5, max_size=5),
    limit=st.one_of(st.integers(0, 200), st.floats(0, 200)),
    by=st.integers(1, 70),
)
def test_a_rounded_row_holds_whenever_the_row_does(size: list[int], run: list[int], limit: float, by: int) -> None:
    used = sum(g * n for g, n in zip(size, run))
    slack = max(0.0, used - limit)
    assert sum(rounded(g, by, limit) * n for g, n in zip(size, run)) <= rounded(limit, by, limit) + slack + 1e-9


def test_gangs_that_do_not_fit_are_seen_by_the_bound() -> None:
    """Three gangs of 64 and two regions of 100 GPUs: they fit by volume, and yet 28 GPUs are too few somewhere."""
    problem = FAMILIES["standard"].generate(np.random.default_rng(1), datasets=3, workloads=3, regions=2)
    options = np.arange(3)
    problem = problem.with_columns(
        {
            "gpu_types": ("H100",),
            "workloads.tier": np.zeros(3, np.int64),
            "tiers": (0,),
            "regions.supply_mgpu": np.full((2, 1), 100_000),
            "regions.gpu_price_micro": np.zeros((2, 1), np.int64),
            "options.workload": options,
            "options.gpu_type": np.zeros(3, np.int64),
            "options.mgpu": np.full(3, 64_000),
        }
    )
    weights = dict.fromkeys(problem.objective.weights, 0.0) | {"overload": 1.0}
    prices = SimpleNamespace(**{name: np.zeros_like(most) for name, most in boxes(problem).items()})
    gang = np.array([[64_000]])
    prices.worst, prices.over = np.zeros((2, 1, 1, 2)), np.zeros((2, 1, 1, 2))
    plain = kept_certificate(problem, weights, prices, gang).bound(problem)
    prices.over[..., 1] = 1 / 200_000
    assert plain == pytest.approx(0.0, abs=1e-9)
    assert kept_certificate(problem, weights, prices, gang).bound(problem) == pytest.approx(28 / 200)


@pytest.mark.parametrize("kind", [np.int64, np.uint32, np.int16, np.float64])
def test_levels_of_another_type_are_refused(problem: DataPlacement, kind: type) -> None:
    with pytest.raises(PlanError, match="read_level"):
        certified_bound(problem, edited(problem, "read_level", lambda level: level.astype(kind)))


@pytest.mark.parametrize("name", ["weight_names", "weights", "read_level", *PRICES])
def test_a_lacking_array_is_named(problem: DataPlacement, name: str) -> None:
    arrays = random_certificate(problem, 4).arrays()
    del arrays[name]
    with pytest.raises(PlanError, match=f"an array called {name}"):
        certified_bound(problem, arrays)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("weights", lambda weights: weights * 2),
        ("weights", lambda weights: weights[:-1]),
        ("weights", lambda weights: np.full_like(weights, np.nan)),
        ("weight_names", lambda names: names[::-1]),
        ("weight_names", lambda names: np.array(["pig"] * len(names))),
        ("weight_names", lambda names: np.arange(len(names))),
    ],
)
def test_weights_of_another_objective_are_refused(
    problem: DataPlacement, name: str, change: Callable[[np.ndarray], Any]
) -> None:
    with pytest.raises(PlanError, match="weight"):
        certified_bound(problem, edited(problem, name, change))
