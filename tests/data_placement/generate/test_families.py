"""Generated instances: the promised distributions, the promised sameness, and that a plan exists."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace

import numpy as np
import pytest

from mast_opt.backends import get
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import SolveParams
from mast_opt.data_placement import DataPlacement, Links, Plan
from mast_opt.data_placement.formulation.formulation import base
from mast_opt.data_placement.generate import FAMILIES, standard
from mast_opt.data_placement.generate import distributions as draws
from mast_opt.data_placement.generate.standard import Recipe, bake
from mast_opt.data_placement.generate.variants import near_data, with_links
from mast_opt.data_placement.plan import fill_remote, gpu_demand
from mast_opt.data_placement.problem import SHARE, Ints
from mast_opt.data_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.data_placement.verification.verifier import verify
from tests.narrowing import some

SMALL = {"datasets": 30, "workloads": 45, "regions": 5}


def made(family: str, seed: int = 0, **sizes: int) -> DataPlacement:
    problem: DataPlacement = FAMILIES[family].generate(np.random.default_rng(seed), **sizes)
    return problem


def differences(a: DataPlacement | Links, b: DataPlacement | Links) -> list[str]:
    """Names of the fields that differ."""
    names = []
    for field in fields(a):
        left, right = getattr(a, field.name), getattr(b, field.name)
        if isinstance(left, np.ndarray):
            same = left.dtype == right.dtype and np.array_equal(left, right)
        elif isinstance(left, Links):
            same = not differences(left, right)
        else:
            same = left == right
        if not same:
            names.append(field.name)
    return names


def gpus_of(problem: DataPlacement) -> Ints:
    """[W] GPUs that each workload needs, on any type."""
    gpus = np.zeros(len(problem.workloads), np.int64)
    gpus[problem.option_workload] = problem.option_mgpu
    return gpus // draws.GPU


def stay(problem: DataPlacement, region: Ints) -> Plan:
    """Every dataset where it is, every workload whole in ``region`` on the first type there, the rest read remotely."""
    possible = np.flatnonzero(
        problem.option_regions[np.arange(len(problem.option_type)), region[problem.option_workload]]
    )
    workload, first = np.unique(problem.option_workload[possible], return_index=True)
    run = (workload, region[workload], problem.option_type[possible][first], np.full(len(workload), SHARE))
    nothing = np.zeros(0, np.int64)
    copies = (nothing, nothing, nothing, nothing)
    return Plan(problem.stored, *run, *copies, *fill_remote(problem, problem.stored, *run))


@pytest.fixture(scope="module")
def large() -> DataPlacement:
    return standard(np.random.default_rng(3), datasets=40_000, workloads=60_000, regions=20)


def test_readers_per_dataset_have_the_published_quantiles(large: DataPlacement) -> None:
    readers = np.bincount(large.read_dataset, minlength=len(large.datasets))
    assert readers.min() == 1
    assert np.percentile(readers, [50, 90, 99]) == pytest.approx([3, 17, 45], abs=1)


def test_readers_are_fewer_where_there_are_fewer_workloads() -> None:
    problem = standard(np.random.default_rng(3), datasets=2000, workloads=80, regions=6)
    readers = np.bincount(problem.read_dataset, minlength=2000)
    assert np.percentile(readers, [50, 99]) == pytest.approx([3, 20], abs=1)
    assert readers.max() == 20


def test_reads_are_distinct_and_sorted(large: DataPlacement) -> None:
    key = large.read_workload * len(large.datasets) + large.read_dataset
    assert (np.diff(key) > 0).all()


def test_sizes_and_cpu_are_lognormal(large: DataPlacement) -> None:
    for amount, median, sigma in ((large.size_mb, 10_000_000, 1.4), (large.cpu_need_mcores, 32_000, 1.0)):
        assert np.median(amount) == pytest.approx(median, rel=0.03)
        assert np.log(amount).std() == pytest.approx(sigma, rel=0.02)


def test_reads_move_half_of_a_dataset_a_day(large: DataPlacement) -> None:
    share = large.read_mb_per_day / large.size_mb[large.read_dataset]
    assert share.mean() == pytest.approx(0.5, rel=0.02)


def test_half_of_the_work_needs_powers_of_two_up_to_64(large: DataPlacement) -> None:
    gpus = gpus_of(large)
    assert np.count_nonzero(gpus) == len(gpus) // 2
    values, counts = np.unique(gpus[gpus > 0], return_counts=True)
    assert values.tolist() == [1, 2, 4, 8, 16, 32, 64]
    assert counts / counts.sum() == pytest.approx(1 / 7, rel=0.05)
    assert len(large.gpu_types) == 2
    options = np.bincount(large.option_workload)
    assert np.mean(options[gpus > 0] == 2) == pytest.approx(0.25, abs=0.01)


def test_fill_of_storage_cpu_and_gpus(large: DataPlacement) -> None:
    assert large.storage_mb.sum() / large.size_mb.sum() == pytest.approx(1.8, rel=1e-6)
    assert large.cpu_need_mcores.sum() / large.cpu_mcores.sum() == pytest.approx(0.8, rel=1e-6)
    assert gpus_of(large).sum() * draws.GPU / large.supply_mgpu.sum() == pytest.approx(1.05, rel=1e-4)


def test_regions_differ_as_dirichlet_says() -> None:
    """Over many seeds, a symmetric Dirichlet(α) over R parts has a coefficient of variation of √((R−1)/(Rα+1))."""
    made_ = [standard(np.random.default_rng(seed), datasets=200, workloads=300, regions=10) for seed in range(60)]
    for alpha, amounts in (
        (4.0, [problem.storage_mb for problem in made_]),
        (4.0, [problem.cpu_mcores for problem in made_]),
        (1.5, [problem.supply_mgpu[:, 0] for problem in made_]),
    ):
        variation = np.mean([np.mean((a / a.mean() - 1) ** 2) for a in amounts]) ** 0.5
        assert variation == pytest.approx((9 / (10 * alpha + 1)) ** 0.5, rel=0.12)


def test_the_rest_of_standard(large: DataPlacement) -> None:
    assert large.tiers == (0, 1, 2)
    assert np.bincount(large.tier) / len(large.tier) == pytest.approx(1 / 3, rel=0.03)
    assert (large.copies_max == 4).all()
    assert (large.stored.sum(axis=1) == 1).all()
    assert (large.stored.T @ large.size_mb <= large.storage_mb).all()
    assert not large.objective.lexicographic
    assert large.objective.weights["peak"] == 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_same_seed_same_instance_and_another_seed_another(family: str) -> None:
    assert differences(made(family, 5, **SMALL), made(family, 5, **SMALL)) == []
    assert {"size_mb", "read_mb_per_day"} <= set(differences(made(family, 5, **SMALL), made(family, 6, **SMALL)))


def test_the_stream_has_not_changed() -> None:
    """The instance of a seed is a contract: whoever changes a draw, or takes a NumPy that does, is to know."""
    problem = standard(np.random.default_rng(2024), datasets=50, workloads=80, regions=6)
    digest = hashlib.sha256()
    for name in ("size_mb", "storage_mb", "cpu_need_mcores", "supply_mgpu", "read_workload", "read_mb_per_day", "tier"):
        digest.update(np.ascontiguousarray(getattr(problem, name)).tobytes())
    assert digest.hexdigest()[:16] == "f0e581be168ac926"


@pytest.mark.parametrize("family", FAMILIES)
def test_an_instance_survives_its_own_tables(family: str) -> None:
    problem = made(family, 1, **SMALL)
    assert differences(problem, problem_from_tables(*problem_to_tables(problem))) == []


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("datasets", "workloads", "regions"), [(1, 1, 1), (2, 1, 3), (5, 3, 2), (3, 9, 12)])
def test_tiny_instances_are_made(family: str, datasets: int, workloads: int, regions: int) -> None:
    problem = made(family, 0, datasets=datasets, workloads=workloads, regions=regions)
    assert (len(problem.datasets), len(problem.workloads), len(problem.regions)) == (datasets, workloads, regions)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_size_below_one_is_refused(family: str) -> None:
    with pytest.raises(UsageError, match="regions is 0; expected at least 1"):
        made(family, 0, datasets=3, workloads=3, regions=0)


@pytest.mark.parametrize(
    "family", ["standard", "many-small-regions", "hot-dataset", "tight-storage", "lexicographic", "published"]
)
@pytest.mark.parametrize(("datasets", "workloads", "regions"), [(50, 80, 6), (1000, 1500, 10)])
def test_a_simple_rule_finds_a_plan(family: str, datasets: int, workloads: int, regions: int) -> None:
    for seed in range(5):
        problem = made(family, seed, datasets=datasets, workloads=workloads, regions=regions)
        region, cpu_mcores = near_data(np.random.default_rng(seed), problem)
        assert np.array_equal(cpu_mcores, problem.cpu_mcores)
        verdict = verify(problem, stay(problem, region))
        assert verdict.violations == ()


def test_links_carry_the_plan_they_are_made_for_and_little_else() -> None:
    rng = np.random.default_rng(7)
    problem = bake(rng, Recipe("links"), 60, 90, 6)
    region, cpu_mcores = near_data(rng, problem)
    problem = with_links(rng, replace(problem, cpu_mcores=cpu_mcores), region)
    assert differences(problem, made("links", 7, datasets=60, workloads=90, regions=6)) == []
    plan = stay(problem, region)
    assert verify(problem, plan).violations == ()
    tight = replace(
        problem,
        links=replace(some(problem.links), capacity_mb_per_day=some(problem.links).capacity_mb_per_day * 10 // 14),
    )
    assert {violation.constraint for violation in verify(tight, plan).violations} == {"link"}


@pytest.mark.parametrize("family", ["weakly-coupled", "features"])
def test_an_exact_solver_finds_a_plan_that_serves_everything(family: str) -> None:
    problem = replace(made(family, 2, **FAMILIES["features"].sizes), may_refuse=False)
    result = get("highs").solve(base(problem).mip, SolveParams(time_limit_s=60, gap=0.5, threads=1))
    assert result.status.has_solution


def test_weakly_coupled_reads_one_dataset_or_a_pair() -> None:
    problem = made("weakly-coupled", 0, datasets=200, workloads=200, regions=10)
    per_workload = np.bincount(problem.read_workload)
    assert set(per_workload.tolist()) == {1, 2}
    assert np.count_nonzero(per_workload == 2) == 40
    assert not problem.remote_reads
    assert (problem.copies_max == 1).all()
    assert problem.size_mb.sum() / problem.storage_mb.sum() == pytest.approx(0.85, abs=0.01)
    assert problem.cpu_need_mcores.sum() / problem.cpu_mcores.sum() == pytest.approx(0.85, abs=0.01)


def test_the_other_families_do_what_they_are_for() -> None:
    hot = made("hot-dataset", 0, datasets=200, workloads=300, regions=10)
    assert 180 <= np.count_nonzero(hot.read_dataset == 0) <= 190
    assert hot.size_mb[0] / hot.size_mb[1:].sum() == pytest.approx(0.05, rel=0.01)
    small = made("many-small-regions", 0, datasets=300, workloads=450, regions=40)
    assert ((small.supply_mgpu > 0).sum(axis=1) <= 1).all()
    tight = made("tight-storage", 0, datasets=200, workloads=300, regions=10)
    assert tight.storage_mb.sum() / tight.size_mb.sum() == pytest.approx(1.1, rel=0.01)
    assert made("lexicographic", 0, **SMALL).objective.order[0] == "overload"


def test_published_starts_from_the_published_skew() -> None:
    problem = made("published", 1, **FAMILIES["published"].sizes)
    run = (problem.current_workload, problem.current_region, problem.current_type, problem.current_share)
    nothing = np.zeros(0, np.int64)
    today = gpu_demand(problem, Plan(problem.stored, *run, *[nothing] * 9))
    with np.errstate(invalid="ignore"):
        ratio = today[:, :, 0] / problem.supply_mgpu
    assert ratio.max(axis=0) == pytest.approx([2.63, 2.63], abs=0.02)
    assert today[:, :, 0].sum() / problem.supply_mgpu.sum() < 0.98
    assert (problem.supply_mgpu[-1] / problem.supply_mgpu.sum(axis=0)).max() < 0.01
    assert np.bincount(problem.tier) / len(problem.tier) == pytest.approx([0.03, 0.20, 0.16, 0.54, 0.07], abs=0.001)
    largest = np.sort(gpus_of(problem))[::-1]
    assert largest[: len(largest) // 50].sum() > largest.sum() / 2


def test_features_leaves_nothing_out() -> None:
    problem = made("features", 0, **FAMILIES["features"].sizes)
    _, tables = problem_to_tables(problem)
    assert tables.missing == frozenset()
    assert all(tables.rows(table) for table in tables.values)
    for name in ("headroom_milli", "ingress_limited", "splittable", "output_mb", "pinned", "work_pinned"):
        assert getattr(problem, name).any(), name
    assert problem.copies_min.max() == 2
    assert problem.may_refuse
    assert problem.days != 1
    assert (np.bincount(problem.current_workload) > 1).any()
    assert all(weight > 0 for weight in problem.objective.weights.values())
    twice = np.flatnonzero(np.bincount(problem.option_workload) == 2)
    numbers = [problem.option_mgpu[problem.option_workload == w] for w in twice.tolist()]
    assert all(first == 2 * second for first, second in numbers)
