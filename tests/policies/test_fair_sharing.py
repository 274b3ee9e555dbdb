"""Fair sharing of what tenants borrow, in the order of ``mast``: by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.core.ledger import Ledger
from mast_opt.core.quota_tree import Quota
from mast_opt.core.quotas import Quotas
from mast_opt.live.loop import events as ev
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.trace import read_trace

FLAT = "tenant,gpus\nt,2\nu,2\n"


def test_shares_are_of_what_siblings_own() -> None:
    """lab owns 8 with those below, of 12 in all. t holds 6, 4 beyond its quota; lab 7, within what it owns."""
    quotas = Quotas({"lab": {None: Quota(0)}, "t": {None: Quota(2)}, "v": {None: Quota(6)}, "u": {None: Quota(4)}})
    for tenant in ("t", "v"):
        quotas.put_below(tenant, "lab")
    ledger = Ledger(quotas)
    ledger.add("a", "t", 0, 0, {"x": 6})
    ledger.add("b", "v", 0, 1, {"x": 1})
    ledger.add("c", "u", 0, 2, {"x": 7})
    assert ledger.shares("t", {}) == (0.0, 0.5)
    assert ledger.shares("v", {}) == ()
    assert ledger.shares("u", {"u": 2.0}) == (0.125,)
    assert ledger.shares("t", {}, 2.0) == (0.0, 0.25)
    assert ledger.shares("nobody", {}) == ()
    ledger.add("d", "v", 0, 3, {"x": 4})
    assert ledger.shares("v", {}) == (0.25,)


def test_the_dominant_type_counts() -> None:
    ledger = Ledger(Quotas({"t": {"x": Quota(2), "y": Quota(1)}, "u": {"x": Quota(8), "y": Quota(1)}}))
    ledger.add("a", "t", 0, 0, {"x": 6, "y": 2})
    assert ledger.shares("t", {}) == (0.5,)  # 1 of 2 beyond its quota of y; 4 of 10 of x


def starts(folder: Path, quotas: str, submissions: str, **params: str) -> list[str]:
    """The jobs in the order in which they start on one server of 8 GPUs."""
    tables = {
        "instance.toml": 'format = "mast-opt/1"\nkind = "job-trace"\nname = "fair"\n',
        "regions.csv": "region\nr\n",
        "clusters.csv": "cluster,region\nc,r\n",
        "servers.csv": "server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb\ns,c,b,x,8,0,0\n",
        "quotas.csv": quotas,
        "submissions.csv": f"job,submitted_s,tier,tasks,gpus,duration_s,tenant\n{submissions}",
    }
    for name, text in tables.items():
        (folder / name).write_text(text)
    log = run_trace(read_trace(folder), "mast", params).events()
    return [one.event.job for one in log if isinstance(one.event, ev.Started)]


HELD = "t0,0,0,1,2,10000,t\nua,100,0,1,2,10000,u\nub,100,0,1,2,10000,u\nfill,0,0,1,2,200,w\n"
"""t holds its quota, u two GPUs beyond; until 200 s, the rest is in use."""


def test_who_borrows_least_goes_first(tmp_path: Path) -> None:
    """Both jobs would borrow. u has left more of its quota unused in time, as it came later, but borrows now."""
    jobs = HELD + "u1,101,0,1,2,10,u\nt1,102,0,1,2,10,t\n"
    assert starts(tmp_path, FLAT, jobs)[4:] == ["u1", "t1"]
    assert starts(tmp_path, FLAT, jobs, sharing="fair")[4:] == ["t1", "u1"]


BOTH = "t0,0,0,1,2,10000,t\nta,0,0,1,1,10000,t\nu0,0,0,1,2,10000,u\nua,0,0,1,2,10000,u\nfill,0,0,1,1,200,w\n"
"""t borrows one GPU, u two."""


def test_weights(tmp_path: Path) -> None:
    jobs = BOTH + "t1,1,0,1,1,10,t\nu1,2,0,1,1,10,u\n"
    assert starts(tmp_path, FLAT, jobs, sharing="fair")[5:] == ["t1", "u1"]
    assert starts(tmp_path, FLAT, jobs, sharing="fair", weights="u:4,t:1")[5:] == ["u1", "t1"]


def test_groups_come_before_those_below(tmp_path: Path) -> None:
    """lab owns 2 GPUs, of which t has all and borrows one more, v none; u owns 2 and holds them. v1 and u1 borrow."""
    tree = "tenant,gpus,parent\nlab,0,\nt,2,lab\nv,0,lab\nu,2,\n"
    jobs = BOTH.replace("ua,0,0,1,2,10000,u\n", "wait,0,0,1,2,10000,w\n") + "v1,1,0,1,1,10,v\nu1,2,0,1,1,10,u\n"
    assert starts(tmp_path, tree, jobs, sharing="fair")[5:] == ["u1", "v1"]
    assert starts(tmp_path, tree, jobs, sharing="fair", weights="lab:0.5")[5:] == ["u1", "v1"]
    assert starts(tmp_path, tree.replace("lab,0", "lab,1"), jobs, sharing="fair")[5:] == ["v1", "u1"]


DAY_S = 86_400


def test_use_over_time(tmp_path: Path) -> None:
    """u held four GPUs for two days, and then t two for one: the longer the half-life, the more u has had."""
    jobs = (
        f"u0,0,0,1,4,{2 * DAY_S},u\nt0,{2 * DAY_S},0,1,2,{DAY_S - 3600},t\n"
        f"wt,{3 * DAY_S - 100},0,1,2,10000,t\nwu,{3 * DAY_S - 100},0,1,2,10000,u\nfill,{3 * DAY_S - 50},0,1,4,50,w\n"
        f"u1,{3 * DAY_S - 20},0,1,4,10,u\nt1,{3 * DAY_S - 10},0,1,4,10,t\n"
    )
    for half_life_s, first in ((DAY_S // 4, "u1"), (40 * DAY_S, "t1")):
        found = starts(tmp_path, FLAT, jobs, sharing="fair", half_life_s=str(half_life_s))
        assert found[-2] == first, half_life_s


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"sharing": "none"}, "sharing is 'none'; expected one of credit, fair"),
        ({"reclaim": "all"}, "reclaim is 'all'; expected one of any, lower-priority, never"),
        ({"half_life_s": 5}, "expected fair with half_life_s or weights"),
        ({"sharing": "fair", "half_life_s": -1}, "half_life_s is -1; expected at least 0"),
        ({"sharing": "fair", "weights": "lab"}, "weights is 'lab'; expected TENANT:WEIGHT"),
        ({"sharing": "fair", "weights": "lab:0"}, "weights is 'lab:0'"),
    ],
)
def test_parameters_that_cannot_be_are_refused(params: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        MastParams(**params)  # type: ignore[arg-type]


def test_weights_of_nobody_are_refused_by_name(tmp_path: Path) -> None:
    jobs = BOTH + "t1,1,0,1,1,10,t\n"
    with pytest.raises(UsageError, match="weights names lab, x, and no tenant or group is called so"):
        starts(tmp_path, FLAT, jobs, sharing="fair", weights="u:2,lab:1,x:1")
    assert starts(tmp_path, FLAT, jobs, sharing="fair", weights="u:2,w:1")  # w has jobs and no quota


RECLAIM = "v,0,0,1,8,1000,t,true,3600\nj,100,1,1,8,10,u,true,3600\n"


@pytest.mark.parametrize(
    ("reclaim", "order"), [("any", ["v", "j", "v"]), ("lower-priority", ["v", "j"]), ("never", ["v", "j"])]
)
def test_reclaim_is_a_parameter(tmp_path: Path, reclaim: str, order: list[str]) -> None:
    """v borrows all GPUs and is the more important job; j is within its quota."""
    (tmp_path / "x").mkdir()
    assert starts(tmp_path, "tenant,gpus\nt,0\nu,8\n", "v,0,0,1,8,1000,t\nj,100,1,1,8,10,u\n", reclaim=reclaim) == order
