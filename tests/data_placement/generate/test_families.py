"""Generated instances: the promised distributions, the promised sameness, and that a plan exists."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems.backends import get
from mast_opt.problems.data_placement import DataPlacement, Plan
from mast_opt.problems.data_placement.formulation.formulation import base
from mast_opt.problems.data_placement.generate import FAMILIES, standard
from mast_opt.problems.data_placement.generate import distributions as draws
from mast_opt.problems.data_placement.generate.standard import Recipe, bake
from mast_opt.problems.data_placement.generate.variants import near_data, with_links
from mast_opt.problems.data_placement.plan import fill_remote, gpu_demand
from mast_opt.problems.data_placement.problem import SHARE, Ints
from mast_opt.problems.data_placement.tables.problem_tables import problem_from_tables, problem_to_tables
from mast_opt.problems.data_placement.verification.verifier import verify
from tests.narrowing import some

SMALL = {"datasets": 30, "workloads": 45, "regions": 5}


def made(family: str, seed: int = 0, **sizes: int) -> DataPlacement:
    problem: DataPlacement = FAMILIES[family].generate(np.random.default_rng(seed), **sizes)
    return problem


def gpus_of(problem: DataPlacement) -> Ints:
    """[W] GPUs that each workload needs, on any type."""
    gpus = np.zeros(len(problem.workloads), np.int64)
    gpus[problem.options.workload] = problem.options.mgpu
    return gpus // draws.GPU


def stay(problem: DataPlacement, region: Ints) -> Plan:
    """Every dataset where it is, every workload whole in ``region`` on the first type there, the rest read remotely."""
    possible = np.flatnonzero(problem.option_regions[np.arange(len(problem.options)), region[problem.options.workload]])
    workload, first = np.unique(problem.options.workload[possible], return_index=True)
    run = (workload, region[workload], problem.options.gpu_type[possible][first], np.full(len(workload), SHARE))
    nothing = np.zeros(0, np.int64)
    copies = (nothing, nothing, nothing, nothing)
    return Plan(problem.datasets.stored, *run, *copies, *fill_remote(problem, problem.datasets.stored, *run))


@pytest.fixture(scope="module")
def large() -> DataPlacement:
    return standard(np.random.default_rng(3), datasets=40_000, workloads=60_000, regions=20)


def test_readers_per_dataset_have_the_published_quantiles(large: DataPlacement) -> None:
    readers = np.bincount(large.reads.dataset, minlength=len(large.datasets))
    assert readers.min() == 1
    assert np.percentile(readers, [50, 90, 99]) == pytest.approx([3, 17, 45], abs=1)


def test_readers_are_fewer_where_there_are_fewer_workloads() -> None:
    problem = standard(np.random.default_rng(3), datasets=2000, workloads=80, regions=6)
    readers = np.bincount(problem.reads.dataset, minlength=2000)
    assert np.percentile(readers, [50, 99]) == pytest.approx([3, 20], abs=1)
    assert readers.max() == 20


def test_reads_are_distinct_and_sorted(large: DataPlacement) -> None:
    key = large.reads.workload * len(large.datasets) + large.reads.dataset
    assert (np.diff(key) > 0).all()


def test_sizes_and_cpu_are_lognormal(large: DataPlacement) -> None:
    for amount, median, sigma in ((large.datasets.size_mb, 10_000_000, 1.4), (large.workloads.cpu_mcores, 32_000, 1.0)):
        assert np.median(amount) == pytest.approx(median, rel=0.03)
        assert np.log(amount).std() == pytest.approx(sigma, rel=0.02)


def test_reads_move_half_of_a_dataset_a_day(large: DataPlacement) -> None:
    share = large.reads.mb_per_day / large.datasets.size_mb[large.reads.dataset]
    assert share.mean() == pytest.approx(0.5, rel=0.02)


def test_half_of_the_work_needs_powers_of_two_up_to_64(large: DataPlacement) -> None:
    gpus = gpus_of(large)
    assert np.count_nonzero(gpus) == len(gpus) // 2
    values, counts = np.unique(gpus[gpus > 0], return_counts=True)
    assert values.tolist() == [1, 2, 4, 8, 16, 32, 64]
    assert counts / counts.sum() == pytest.approx(1 / 7, rel=0.05)
    assert len(large.gpu_types) == 2
    options = np.bincount(large.options.workload)
    assert np.mean(options[gpus > 0] == 2) == pytest.approx(0.25, abs=0.01)


def test_fill_of_storage_cpu_and_gpus(large: DataPlacement) -> None:
    assert large.regions.storage_mb.sum() / large.datasets.size_mb.sum() == pytest.approx(1.8, rel=1e-6)
    assert large.workloads.cpu_mcores.sum() / large.regions.cpu_mcores.sum() == pytest.approx(0.8, rel=1e-6)
    assert gpus_of(large).sum() * draws.GPU / large.regions.supply_mgpu.sum() == pytest.approx(1.05, rel=1e-4)


def test_regions_differ_as_dirichlet_says() -> None:
    """Over many seeds, a symmetric Dirichlet(α) over R parts has a coefficient of variation of √((R−1)/(Rα+1))."""
    made_ = [standard(np.random.default_rng(seed), datasets=200, workloads=300, regions=10) for seed in range(60)]
    for alpha, amounts in (
        (4.0, [problem.regions.storage_mb for problem in made_]),
        (4.0, [problem.regions.cpu_mcores for problem in made_]),
        (1.5, [problem.regions.supply_mgpu[:, 0] for problem in made_]),
    ):
        variation = np.mean([np.mean((a / a.mean() - 1) ** 2) for a in amounts]) ** 0.5
        assert variation == pytest.approx((9 / (10 * alpha + 1)) ** 0.5, rel=0.12)


def test_the_rest_of_standard(large: DataPlacement) -> None:
    assert large.tiers == (0, 1, 2)
    assert np.bincount(large.workloads.tier) / len(large.workloads.tier) == pytest.approx(1 / 3, rel=0.03)
    assert (large.datasets.copies_max == 4).all()
    assert (large.datasets.stored.sum(axis=1) == 1).all()
    assert (large.datasets.stored.T @ large.datasets.size_mb <= large.regions.storage_mb).all()
    assert not large.objective.lexicographic
    assert large.objective.weights["peak"] == 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_same_seed_same_instance_and_another_seed_another(family: str) -> None:
    problem, other = made(family, 5, **SMALL), made(family, 6, **SMALL)
    assert made(family, 5, **SMALL) == problem
    assert not np.array_equal(problem.datasets.size_mb, other.datasets.size_mb)
    assert not np.array_equal(problem.reads.mb_per_day, other.reads.mb_per_day)


def test_the_stream_has_not_changed() -> None:
    """The instance of a seed is a contract: whoever changes a draw, or takes a NumPy that does, is to know."""
    problem = standard(np.random.default_rng(2024), datasets=50, workloads=80, regions=6)
    digest = hashlib.sha256()
    for name in (
        "datasets.size_mb",
        "regions.storage_mb",
        "workloads.cpu_mcores",
        "regions.supply_mgpu",
        "reads.workload",
        "reads.mb_per_day",
        "workloads.tier",
    ):
        digest.update(np.ascontiguousarray(attrgetter(name)(problem)).tobytes())
    assert digest.hexdigest()[:16] == "f0e581be168ac926"


@pytest.mark.parametrize("family", FAMILIES)
def test_an_instance_survives_its_own_tables(family: str) -> None:
    problem = made(family, 1, **SMALL)
    assert problem_from_tables(*problem_to_tables(problem)) == problem


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
        assert np.array_equal(cpu_mcores, problem.regions.cpu_mcores)
        verdict = verify(problem, stay(problem, region))
        assert verdict.violations == ()


def test_links_carry_the_plan_they_are_made_for_and_little_else() -> None:
    rng = np.random.default_rng(7)
    problem = bake(rng, Recipe("links"), 60, 90, 6)
    region, cpu_mcores = near_data(rng, problem)
    problem = with_links(rng, replace(problem, regions=replace(problem.regions, cpu_mcores=cpu_mcores)), region)
    assert problem == made("links", 7, datasets=60, workloads=90, regions=6)
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
    per_workload = np.bincount(problem.reads.workload)
    assert set(per_workload.tolist()) == {1, 2}
    assert np.count_nonzero(per_workload == 2) == 40
    assert not problem.remote_reads
    assert (problem.datasets.copies_max == 1).all()
    assert problem.datasets.size_mb.sum() / problem.regions.storage_mb.sum() == pytest.approx(0.85, abs=0.01)
    assert problem.workloads.cpu_mcores.sum() / problem.regions.cpu_mcores.sum() == pytest.approx(0.85, abs=0.01)


def test_the_other_families_do_what_they_are_for() -> None:
    hot = made("hot-dataset", 0, datasets=200, workloads=300, regions=10)
    assert 180 <= np.count_nonzero(hot.reads.dataset == 0) <= 190
    assert hot.datasets.size_mb[0] / hot.datasets.size_mb[1:].sum() == pytest.approx(0.05, rel=0.01)
    small = made("many-small-regions", 0, datasets=300, workloads=450, regions=40)
    assert ((small.regions.supply_mgpu > 0).sum(axis=1) <= 1).all()
    tight = made("tight-storage", 0, datasets=200, workloads=300, regions=10)
    assert tight.regions.storage_mb.sum() / tight.datasets.size_mb.sum() == pytest.approx(1.1, rel=0.01)
    assert made("lexicographic", 0, **SMALL).objective.order[0] == "overload"


def today(problem: DataPlacement) -> Plan:
    """What is stored and what runs today; every dataset of another region is read remotely."""
    runs = problem.current_runs
    run = (runs.workload, runs.region, runs.gpu_type, runs.share)
    copies = (np.zeros(0, np.int64),) * 4
    return Plan(problem.datasets.stored, *run, *copies, *fill_remote(problem, problem.datasets.stored, *run))


def test_published_starts_from_the_published_skew() -> None:
    problem = made("published", 1, **FAMILIES["published"].sizes)
    demand = gpu_demand(problem, today(problem))
    with np.errstate(invalid="ignore"):
        ratio = demand[:, :, 0] / problem.regions.supply_mgpu
    assert ratio.max(axis=0) == pytest.approx([2.63, 2.63], abs=0.02)
    assert demand[:, :, 0].sum() / problem.regions.supply_mgpu.sum() < 0.98
    assert (problem.regions.supply_mgpu[-1] / problem.regions.supply_mgpu.sum(axis=0)).max() < 0.01
    assert np.bincount(problem.workloads.tier) / len(problem.workloads.tier) == pytest.approx(
        [0.03, 0.20, 0.16, 0.54, 0.07], abs=0.001
    )
    largest = np.sort(gpus_of(problem))[::-1]
    assert largest[: len(largest) // 50].sum() > largest.sum() / 2


def test_organisation_starts_from_the_published_skew_and_what_runs_today_fits() -> None:
    for seed in range(3):
        problem = made("organisation", seed)
        assert verify(problem, today(problem)).violations == ()
        demand = gpu_demand(problem, today(problem))
        assert (demand[:, :, 0] / problem.regions.supply_mgpu).max(axis=0) == pytest.approx([2.63] * 3, abs=0.01)
        offered = demand.sum(axis=(0, 1)) / problem.regions.supply_mgpu.sum()
        assert offered[[0, -1]] == pytest.approx([0.95, 1.3], abs=0.03)
        supply = problem.regions.supply_mgpu.sum(axis=1)
        assert supply[-1] / supply.sum() == pytest.approx(0.002, abs=0.0005)
        assert problem.regions.storage_mb.sum() / problem.datasets.size_mb.sum() == pytest.approx(2.25, rel=1e-6)
        urgent = (problem.workloads.tier == 0) & (gpus_of(problem) > 0)
        gpus = gpus_of(problem)[urgent]
        assert gpus[problem.workloads.splittable[urgent]].sum() / gpus.sum() == pytest.approx(0.70, abs=0.01)


def test_organisation_reads_mostly_its_own_data() -> None:
    problem = made("organisation", 4, datasets=20_000, workloads=100_000, regions=12)
    readers = np.bincount(problem.reads.dataset, minlength=len(problem.datasets))
    assert np.percentile(readers, [50, 90, 99]) == pytest.approx([3, 17, 45], abs=2)
    assert (np.bincount(problem.reads.workload, minlength=100_000) > 0).all()
    team, namespace = (
        np.array([label.split(".")[part] for label in problem.datasets.labels])[problem.reads.dataset]
        for part in (0, 1)
    )
    first = np.searchsorted(problem.reads.workload, problem.reads.workload)
    own_team = np.mean(team == team[first])
    assert 0.90 < own_team < 0.97
    assert 0.75 < np.mean(namespace == namespace[first]) < own_team
    homes = problem.datasets.stored.argmax(axis=1)[problem.reads.dataset]
    assert np.mean(homes == homes[first]) > own_team


def test_organisation_without_first_time_work_has_no_forecasts() -> None:
    problem = made("organisation", 0, **SMALL, first_time_percent=0)
    assert not problem.workloads.splittable.any()
    with pytest.raises(UsageError, match="storage_percent is 99; expected at least 100"):
        made("organisation", 0, **SMALL, storage_percent=99)


def test_features_leaves_nothing_out() -> None:
    problem = made("features", 0, **FAMILIES["features"].sizes)
    _, tables = problem_to_tables(problem)
    assert tables.missing == {"candidates"}, "what may be bought is a question's, and no part of the present state"
    assert all(tables.rows(table) for table in tables.values if table not in tables.missing)
    for name in (
        "regions.headroom_milli",
        "regions.ingress_limited",
        "workloads.splittable",
        "workloads.output_mb",
        "datasets.pinned",
        "workloads.pinned",
    ):
        assert attrgetter(name)(problem).any(), name
    assert problem.datasets.copies_min.max() == 2
    assert problem.may_refuse
    assert problem.days != 1
    assert (np.bincount(problem.current_runs.workload) > 1).any()
    unweighted = {term for term, weight in problem.objective.weights.items() if weight == 0}
    assert unweighted == {"running_cost", "migration_cost"}, (
        "tetris does not price dollars, and is tested on this family"
    )
    twice = np.flatnonzero(np.bincount(problem.options.workload) == 2)
    numbers = [problem.options.mgpu[problem.options.workload == w] for w in twice.tolist()]
    assert all(first == 2 * second for first, second in numbers)
