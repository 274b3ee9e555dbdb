"""Answers of a data-placement plan to what is asked first: what doing nothing costs, what to do, what it brings."""

import numpy as np

from mast_opt.core.units import MB_PER_TB, MILLI
from mast_opt.core.verdict import Verdict
from mast_opt.core.wording import as_shown, counted, gpus, in_gpus, listed, noticed, percent, plain, ratio
from mast_opt.problems.data_placement.analysis.current_state import complete, current_state, money_counts
from mast_opt.problems.data_placement.analysis.short_days import short_days
from mast_opt.problems.data_placement.plan import Plan, filled_mb, gpu_demand, lacking_gpus, today
from mast_opt.problems.data_placement.presentation import details
from mast_opt.problems.data_placement.problem import SHARE, DataPlacement, Ints
from mast_opt.problems.data_placement.tables.problem_tables import in_full
from mast_opt.problems.data_placement.verification.verifier import verify
from mast_opt.problems.kind.presentation import Answer

MOST_NAMED = 3
"""Region/type pairs that an answer names."""

REFUSED = "Refused work"
NOW = "nothing for today's work"
"""Value of what to buy where the GPUs that there are would do."""
LATER = "What grows later may have to be ordered today: 'mast-opt buy --periods' says what to order when."
COMPARED = {
    "overload_gpus": "GPUs over the supply",
    "peak_ratio": "worst demand / supply",
    "peak_ratio_tier0": "the same, tier 0",
    "unserved_gpus": "GPUs of work that stands still",
    "remote_tb_per_day": "TB read remotely a day",
    "billed_usd_a_month": "USD a month, of what fits",
    "overload_usd_a_month": "USD a month that the missing GPUs would cost",
    "migration_cost": "USD once",
    "new_replicas": "copies",
    "copied_tb": "TB copied",
    "moved_shares": "workloads moved, by share",
    "moved_work": "work that leaves its region",
    "retyped_work": "work that leaves its GPU type",
}
"""Figures by which plans are compared, most important first."""


def answers(problem: DataPlacement, plan: Plan) -> tuple[Answer, ...]:
    """Doing nothing, what to do, work that the plan refuses (if any), overload, cost, storage, what to buy."""
    plan = in_full(problem, plan)
    now = today(problem) if complete(problem) else None
    before, after = None if now is None else verify(problem, now), verify(problem, plan)
    overload = (_overload(problem, before, after, plan),) if problem.regions.supply_mgpu.any() else ()
    rest = (_cost(problem, before, after), _storage(problem, plan), _missing(problem, plan))
    refused = _refused(problem, plan)
    return (_nothing(problem, now, before), _moves(problem, plan, after), *refused, *overload, *rest)


def _refused(p: DataPlacement, plan: Plan) -> tuple[Answer, ...]:
    """Answer on work that the plan does not serve: workloads, their GPUs, and how many no region may run."""
    share = _refused_share(p, plan)
    if not share.any():
        return ()
    number = counted(int(np.count_nonzero(share)), "workload")
    mgpu, barred = float(share @ p.fewest_mgpu), share[~p.allowed.any(axis=1)]
    value = f"{number}, {in_gpus(mgpu / SHARE / MILLI)}" if mgpu else number
    words = "The plan does not run this work, or only in part; the overload does not count it."
    if barred.any():
        some = counted(int(np.count_nonzero(barred)), "workload")
        words += f" No region may run {some} of these: data is lost, or work is forbidden."
    return (Answer(REFUSED, value, words, details.work_title(p) if len(p.current_runs) else ""),)


def _refused_share(p: DataPlacement, plan: Plan) -> Ints:
    """Shares [W] of the workloads, out of ``SHARE``, that a plan does not serve."""
    served = np.zeros(len(p.workloads), np.int64)
    np.add.at(served, plan.run_workload, plan.run_share)
    return SHARE - served


def _nothing(p: DataPlacement, now: Plan | None, verdict: Verdict | None) -> Answer:
    """Answer to what happens if nothing is done: overload and cost of today's placement."""
    topic = "If nothing is done"
    if now is None or verdict is None:
        return Answer(topic, "not known", "The instance does not state for all work where it runs today.", "")
    lacking, still, parts = lacking_gpus(p, now), verdict.metrics["unserved_gpus"], []
    if lacking.any():
        r, k = np.unravel_index(int(lacking.argmax()), lacking.shape)
        parts.append(f"most of them {p.gpu_types[int(k)]} in {p.regions.labels[int(r)]}")
    if broken := current_state(p).broken:
        parts += [f"{counted(len(broken), 'limit')} broken", broken[0].message]
    remote = verdict.metrics["remote_tb_per_day"]
    parts += [f"{remote:,.1f} TB a day read from other regions"] if noticed(remote, "tb") else []
    parts += [f"{usd(verdict.metrics['billed_usd_a_month'])} a month for what fits"] if p.has_prices else []
    parts = [*([f"{in_gpus(lacking.sum())} missing"] if lacking.any() else []), *parts]
    parts = [*([f"work of {in_gpus(still)} stands still"] if noticed(still, "gpus") else []), *parts]
    value = parts.pop(0) if parts else "nothing is missing"
    words = "; ".join(parts) or "all else is as it should be"
    return Answer(topic, value, f"{words[0].upper()}{words[1:]}.", details.BINDING)


def _overload(p: DataPlacement, before: Verdict | None, after: Verdict, plan: Plan) -> Answer:
    """Answer on overload: worst demand over supply, and in how many regions and GPU types."""
    over, supplied = int((lacking_gpus(p, plan) > 0).sum()), int((p.regions.supply_mgpu > 0).sum())
    worst = " → ".join(
        ratio(as_shown(one.metrics)["peak_ratio"], (1.0, *p.objective.peak_levels.values()))
        for one in (before, after)
        if one
    )
    where = f"{over} of {supplied} region/GPU-type pairs"
    words = f"Worst demand over supply, of work that runs. Demand exceeds supply in {where}."
    return Answer("Overload", worst, words, details.BINDING)


def _cost(p: DataPlacement, before: Verdict | None, after: Verdict) -> Answer:
    """Answer on cost: USD a month for GPUs that exist, before and after a data-placement plan."""
    if not p.has_prices:
        return Answer("Cost", "no prices", "The instance states no prices: usd_per_gpu_hour, usd_per_tb_month, …", "")
    costs = [as_shown(one.metrics) for one in (before, after) if one]
    billed, beyond = ([one[f"{what}_usd_a_month"] for one in costs] for what in ("billed", "overload"))
    once = "A month, at the prices of the instance."
    if noticed(max(beyond), "usd"):
        once += f" Only GPUs that exist are billed: those that work lacks would cost {_change(beyond)} more."
    once += "" if money_counts(p) else " The objective of this plan counts no money; '--goal cheapest' does."
    return Answer("Cost", _change(billed), once, "")


def moves(problem: DataPlacement, plan: Plan, verdict: Verdict) -> dict[str, float]:
    """Terms on moves as people compare them: without work that runs today and stands still under the plan."""
    p, now, number = problem, problem.current_runs, len(problem.workloads)
    stops = np.bincount(now.workload, now.share, number) - np.bincount(plan.run_workload, plan.run_share, number)
    of_work = float(np.maximum(stops, 0) @ p.demand_mgpu) / SHARE / max(int(p.demand_mgpu.sum()), 1)
    return {name: round(max(verdict.terms[name] - of_work, 0.0), 9) for name in ("moved_work", "retyped_work")}


def change_notes(before: Verdict, after: Verdict) -> tuple[str, ...]:
    """Sentences on what money once is, and on why running cost and bill change by other amounts, where they do."""
    paid = after.terms.get("migration_cost", 0.0)
    once = f"migration_cost ({paid:,.0f}) is for copies from today's replicas; 'steps' says what its copies cost."
    return *((once,) if noticed(paid, "usd") else ()), *_bill_notes(before, after)


def _bill_notes(before: Verdict, after: Verdict) -> tuple[str, ...]:
    """A sentence on why the running cost and the bill change by other amounts, where they do."""
    names = ("billed_usd_a_month", "overload_usd_a_month")
    if not all(name in one.metrics for name in names for one in (before, after)):
        return ()
    billed, beyond = (after.metrics[name] - before.metrics[name] for name in names)
    if not noticed(abs(beyond), "usd"):
        return ()
    words = (
        f"running_cost ({billed + beyond:+,.0f}) is the price of all work, as if GPUs over the supply existed; "
        f"billed_usd_a_month ({billed:+,.0f}) is that of GPUs that exist, and overload_usd_a_month ({beyond:+,.0f}) "
        "the rest. So the bill grows where work that had no GPUs gets some."
    )
    return (words,)


def _change(amounts: list[float]) -> str:
    """Sums of money before and after, the unit of both named once."""
    texts = [usd(amount) for amount in amounts]
    if len({text.partition(" ")[2] for text in texts}) == 1:
        texts[:-1] = [text.partition(" ")[0] for text in texts[:-1]]
    return " → ".join(texts)


def usd(amount: float) -> str:
    """A sum of money with a unit that suits its size."""
    for size, unit in ((1e9, " billion"), (1e6, " million")):
        if amount >= size:
            return f"{amount / size:,.2f}{unit} USD"
    return f"{amount:,.0f} USD" if amount >= 10 else f"{plain(round(amount, 1))} USD"


def _storage(p: DataPlacement, plan: Plan) -> Answer:
    """Answer on storage: TB of replicas before and after, and the fullest region."""
    before, after = (float((p.datasets.size_mb @ place).sum()) / MB_PER_TB for place in (p.datasets.stored, plan.place))
    fill = filled_mb(p, plan) / np.maximum(p.usable_storage_mb, 1)
    at = int(fill.argmax())
    words = f"Replicas. Fullest: {p.regions.labels[at]}, {fill[at]:.0%} of its storage less headroom."
    return Answer("Storage", f"{before:,.0f} → {after:,.0f} TB", words, "Storage in use")


def _moves(p: DataPlacement, plan: Plan, verdict: Verdict) -> Answer:
    """Answer on moves: workloads and datasets that a data-placement plan moves."""
    work, data = details.workloads_that_move(p, plan), details.datasets_that_move(p, plan)
    copied = sum(float(row[5] or 0.0) for row in data.rows)
    kept = sum(row[3] != details.LEFT_OUT for row in work.rows)
    value = f"{counted(kept, 'workload')}, {counted(len(data.rows), 'dataset')}"
    rows = work.rows if p.gpu_types else ()
    moved = {
        words: sum(noticed(float(row[at] or 0.0), "gpus") for row in rows if (row[3] == details.LEFT_OUT) == out)
        for at, words, out in (
            (4, "change region", False),
            (5, "change only their GPU type", False),
            (4, "are left out (as used today)", True),
        )
    }
    parts = [f"{in_gpus(one)} of work {words}" for words, one in moved.items() if one]
    words = f"{listed(parts) if parts else ''}{'; ' if parts else ''}{copied:,.1f} TB are copied or uploaded."
    share, least = moves(p, plan, verdict)["moved_work"], float(p.demand_mgpu.sum()) / MILLI
    if noticed(share * least, "gpus"):
        words += f" {percent(share, 1)} of the work leaves its region, by the fewest GPUs that each workload needs."
    if not len(p.current_runs):
        words = f"The instance does not state where work runs today; {copied:,.1f} TB are copied or uploaded."
    return Answer("What to do", value, words, work.title if work.rows else details.DATA)


def _missing(p: DataPlacement, plan: Plan) -> Answer:
    """Answer on what to buy: GPUs that the plan's work lacks, and those that the work it refuses would take."""
    lacking, share = _lacking(p, plan), _refused_share(p, plan)
    if not share.any():
        return lacking
    runs, mgpu = p.allowed.any(axis=1), share * p.fewest_mgpu
    able, barred = (float(mgpu[one].sum()) / SHARE / MILLI for one in (runs, ~runs))
    values, words = [lacking.value] if lacking.value != NOW else [], ""
    if barred:
        words = f"No purchase lets {in_gpus(barred)} of refused work run: no region may run it. "
    if able:
        of_able = (runs & (share > 0))[p.options.workload] & (p.options.mgpu > 0)
        types = " or ".join(p.gpu_types[k] for k in np.unique(p.options.gpu_type[of_able]).tolist())
        values.append(f"for refused work of {in_gpus(able)}")
        words += f"Refused work of {in_gpus(able)} accepts {types}: 'mast-opt buy' looks for what serves it. "
    value = ", and ".join(values) or "no GPUs serve the refused work"
    return Answer(lacking.topic, value, words + lacking.detail.replace("This plan fits", "The rest fits"), lacking.more)


def lacking_words(p: DataPlacement, plan: Plan) -> str:
    """Words on the GPUs that a plan's work lacks, the most first: "51 h100 in east, 16 a100 in west"."""
    lacking = lacking_gpus(p, plan)
    pairs = sorted(np.argwhere(lacking > 0).tolist(), key=lambda at: -lacking[at[0], at[1]])
    named = [f"{gpus(lacking[r, k])} {p.gpu_types[k]} in {p.regions.labels[r]}" for r, k in pairs[:MOST_NAMED]]
    more = f" and {len(pairs) - MOST_NAMED} more pairs" if len(pairs) > MOST_NAMED else ""
    return f"{', '.join(named)}{more}"


def _lacking(p: DataPlacement, plan: Plan) -> Answer:
    """Answer on what to buy for the work that a plan serves: GPUs that are missing, by region and type."""
    lacking = lacking_gpus(p, plan)
    idle = np.maximum(p.regions.supply_mgpu - gpu_demand(p, plan)[:, :, -1], 0).sum(axis=0) / MILLI
    if not lacking.any():
        return Answer("What to buy", NOW, f"This plan fits into what there is. {LATER}", "")
    words, late = f"This plan lacks {lacking_words(p, plan)}", short_days(p, plan)
    beyond = np.ceil(np.maximum(lacking.sum(axis=0) - idle, 0))
    if not beyond.any():
        there = ", ".join(f"{gpus(idle[k])} {p.gpu_types[k]}" for k in np.flatnonzero(lacking.any(axis=0)))
        words += (
            f", while {there} are idle elsewhere. '--limit overload_gpus=0' looks for a plan that lacks nothing. {late}"
        )
        return Answer("What to buy", NOW, words.strip(), details.BINDING)
    words += f", more than is idle elsewhere. 'mast-opt buy' finds the cheapest purchase and its plan. {late}"
    return Answer("What to buy", counted(int(beyond.sum()), "GPU"), words.strip(), details.BINDING)
