"""MAST's claims as experiments: a generated organisation before and after, and with one thing changed at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mast_opt.core.units import MB_PER_TB
from mast_opt.loop.events import CopyAsked
from mast_opt.loop.metrics import metrics
from mast_opt.loop.place_metrics import place_metrics
from mast_opt.simulation.organisation.params import OrganisationParams
from mast_opt.simulation.organisation.trace import organisation_trace
from mast_opt.simulation.run import run_trace
from mast_opt.simulation.traces.surroundings import Happening
from mast_opt.simulation.traces.trace import JobTrace
from mast_opt.simulation.variants import jobs_at

DAY_MS = 86_400_000

WORST_BEFORE = 2.63
"""Published: tier-0 demand over supply in the worst region before."""


@dataclass(frozen=True)
class Variant:
    """One way to run an organisation. What is not listed is as in ``AFTER``."""

    name: str
    says: str
    """What differs, in words."""
    policy: str = "mast"
    params: Mapping[str, str] = field(default_factory=dict)
    slow: tuple[str, ...] = ("data",)
    organisation: Mapping[str, Any] = field(default_factory=dict)
    """Changed parameters of the organisation."""
    preemption: bool = True
    instant: bool = False
    """Copies take no time."""
    everywhere: bool = False
    """All data is in every region from the start."""
    lost_switchboard: bool = False
    """A switchboard is down for a day in the middle of the window."""


PLAN = {"slow.data.keep_origin": "true", "slow.data.copies_min": "1", "slow.data.storage_weight": "0"}
"""Parameters of the data plan: replicas stay as long as there is room, and data stays where it appeared."""
PACKED = (("same", "same-tier", "if that stops nothing more important"), ("always", "always", "whenever there is room"))
"""Name of variants, parameter, and words."""
AFTER = Variant("after", "daily data plan (5 h, copies of days), late binding")
BEFORE = Variant("before", "jobs run in their home region, data never moves", params={"bind": "home"}, slow=())
VARIANTS: Mapping[str, Variant] = {
    one.name: one
    for one in (
        BEFORE,
        AFTER,
        Variant("early-share", "bound on arrival by the share that is left", params={"bind": "share"}),
        Variant("early-free", "bound on arrival by the GPUs that are left", params={"bind": "free"}),
        Variant("early-stale", "as early-share, loads are 5 minutes old", params={"bind": "share", "age_s": "300"}),
        Variant("regional", "as before, with the data plan: no scope decoupling", params={"bind": "home"}),
        Variant("no-plan", "late binding, data never moves", slow=()),
        Variant("hard", "V0: no plan may exceed GPU supply", params={"slow.data.gpu_limit": "hard"}),
        Variant("soft", "V1: storage of regions does not follow GPUs", organisation={"storage_by": "chance"}),
        Variant("instant", "plans and copies take no time", params={"slow.data.takes_s": "0"}, instant=True),
        Variant("frozen-7", "a data plan each seventh day", params={"slow.data.plan_each": "7"}),
        Variant("frozen-30", "one data plan, after a day", params={"slow.data.plan_each": "30"}),
        Variant(
            "two-copies",
            "second copies of what was read, as far as there is room",
            params={"slow.data.copies_min": "2"},
        ),
        Variant("foresight", "demand of the next days is known", params={"slow.data.forecast": "perfect"}),
        *(
            Variant(
                f"error-{name}",
                f"forecasts have lognormal errors of σ {sigma}",
                params={"slow.data.forecast_error": sigma},
            )
            for name, sigma in (("50", "0.5"), ("150", "1.5"))
        ),
        Variant("free-copies", "plans do not weigh what they copy", params={"slow.data.copy_weight": "0"}),
        Variant("no-origins", "data may leave where it appeared", params={"slow.data.keep_origin": "false"}),
        Variant("best-fit", "servers are chosen by best fit", params={"placement": "best-fit"}),
        *(
            Variant(f"pack-{name}", f"parts of servers are packed: {words}", params={"pack": pack})
            for name, pack, words in PACKED
        ),
        Variant("everywhere", "all data everywhere from the start, nothing planned", slow=(), everywhere=True),
        *(
            Variant(
                f"everywhere-pack-{name}",
                f"as everywhere, parts of servers are packed: {words}",
                params={"pack": pack},
                slow=(),
                everywhere=True,
            )
            for name, pack, words in PACKED
        ),
        Variant("no-preemption", "nothing is stopped", preemption=False),
        *(
            Variant(
                f"storage-{percent}",
                f"storage {percent / 100:g} times one copy",
                organisation={"storage_percent": percent},
            )
            for percent in (110, 150, 200, 250)
        ),
        *(
            Variant(
                f"first-time-{percent}", f"{percent}% first-time work", organisation={"first_time_percent": percent}
            )
            for percent in (0, 30, 95)
        ),
        Variant("short", "jobs a third as long", organisation={"median_hours": 2.0}),
        Variant("long", "jobs twice as long", organisation={"median_hours": 12.0}),
        Variant("load-70", "demand of all tiers 0.7 of the default", organisation={"load": 0.7}),
        Variant(
            "servers",
            "two clusters in each region, servers move",
            slow=("data", "servers"),
            organisation={"clusters": 2},
        ),
        Variant("no-servers", "two clusters in each region, servers stay", organisation={"clusters": 2}),
        Variant(
            "lost-with-servers",
            "as servers, a switchboard is lost for a day",
            slow=("data", "servers"),
            organisation={"clusters": 2},
            lost_switchboard=True,
        ),
        Variant(
            "lost-no-servers",
            "as no-servers, a switchboard is lost for a day",
            organisation={"clusters": 2},
            lost_switchboard=True,
        ),
    )
}


def trace_of(variant: Variant, params: OrganisationParams) -> JobTrace:
    """The trace that a variant runs."""
    trace = organisation_trace(replace(params, **variant.organisation))
    if not variant.preemption:
        jobs = trace.submissions
        trace = replace(trace, submissions=replace(jobs, preemptible=np.zeros(len(jobs), np.bool_)))
    around = trace.surroundings
    if variant.everywhere:
        trace = replace(trace, replicas=dict.fromkeys(trace.replicas, trace.regions))
        around = replace(around, storage_mb={})
    if variant.instant:
        around = replace(around, ingress_mb_per_day={}, links=None)
    if variant.lost_switchboard:
        at_ms, board = round(params.days * 0.75) * DAY_MS, sorted(set(around.switchboards.values()))[0]
        lost = (Happening(at_ms, "switchboard_down", board), Happening(at_ms + DAY_MS, "switchboard_up", board))
        around = replace(around, happenings=(*around.happenings, *lost))
    return replace(trace, surroundings=around)


def run_variant(
    variant: Variant, params: OrganisationParams, given: Mapping[str, str], *, warm_up_days: float
) -> dict[str, Any]:
    """The figures of a run.

    Args:
        given: parameters of the run that the variant does not set, as text.
        warm_up_days: jobs that come earlier do not count.
    """
    trace = trace_of(variant, params)
    off = tuple(f"slow.{name}." for name in ("data", "servers") if name not in variant.slow)
    stated = {**PLAN, **given}
    known = {name: text for name, text in stated.items() if not name.startswith(off)}
    until_ms = params.days * DAY_MS
    run = run_trace(trace, variant.policy, {**known, **variant.params}, slow=variant.slow, until_ms=until_ms)
    since_ms = round(warm_up_days * DAY_MS)
    found = metrics(run.rows, since_ms, until_ms).to_dict()
    found.update(place_metrics(run.events(), since_ms, until_ms).to_dict())
    copied_mb = sum(
        stored.event.size_mb
        for stored in run.events()
        if isinstance(stored.event, CopyAsked) and since_ms <= stored.at_ms < until_ms
    )
    return {**found, "copied_tb_per_day": copied_mb / MB_PER_TB / (params.days - warm_up_days)}


def calibrated(params: OrganisationParams, *, warm_up_days: float, tolerance: float = 0.05) -> OrganisationParams:
    """The parameters with the skew that makes the mean worst ratio of tier 0 before what was published.

    Only tier 0 is run: nothing that is less important changes when it runs.
    """
    low, high = 0.9, 2.6
    for _ in range(12):
        skew = (low + high) / 2
        tried = replace(params, skew=skew)
        ratio = _ratio_before(tried, warm_up_days)
        if abs(ratio - WORST_BEFORE) <= tolerance:
            return tried
        low, high = (skew, high) if ratio < WORST_BEFORE else (low, skew)
    return tried


def _ratio_before(params: OrganisationParams, warm_up_days: float) -> float:
    trace = organisation_trace(params)
    kept = np.flatnonzero(trace.submissions.tier == 0)
    trace = replace(trace, submissions=jobs_at(trace.submissions, kept))
    until_ms = params.days * DAY_MS
    run = run_trace(trace, BEFORE.policy, {**BEFORE.params, "tick_s": "60"}, until_ms=until_ms)
    mean = place_metrics(run.events(), round(warm_up_days * DAY_MS), until_ms).worst_ratio[0].mean
    return float("nan") if mean is None else mean
