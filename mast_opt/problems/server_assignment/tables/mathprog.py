"""GNU MathProg data of server-assignment instances: for ``models/server_assignment.mod``, glpsol and other readers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from mast_opt.problems.kind.mathprog import section, write_data
from mast_opt.problems.server_assignment.formulation.index_sets import pairs_of
from mast_opt.problems.server_assignment.problem import BUFFERS, ServerAssignment

AXES: dict[str, tuple[str, ...]] = dict.fromkeys(("datacenters", "switchboards", "types", "reservations"), ())


def write_dat(problem: ServerAssignment, path: Path) -> None:
    """Write the data section that, with the .mod, states this problem. The objective is the weighted one."""
    write_data(problem, path, "server_assignment.mod", AXES, _sections)


def _sections(p: ServerAssignment) -> Iterator[Iterator[str]]:
    """Servers, then reservations, as the .mod declares them."""
    datacenter, switchboard = np.array(p.datacenters), np.array(p.switchboards.labels)
    kind, reservation = np.array(p.types), np.array(p.reservations.labels)
    stock = p.stocks.first
    pairs = pairs_of(p)
    yield section("set DATACENTER", datacenter)
    yield section("param : SWITCHBOARD : datacenter", switchboard, datacenter[p.switchboards.datacenter])
    yield section("set TYPE", kind)
    at_stock = (kind[p.servers.type[stock]], switchboard[p.server_switchboard[stock]])
    yield section("param : STOCK : size", *at_stock, p.stocks.size)
    yield section(
        "param : RESERVATION : asked buffer",
        reservation,
        p.reservations.asked_mrru,
        np.array(BUFFERS)[p.reservations.buffer],
    )
    q, t = np.nonzero(p.reservations.value_mrru)
    yield section("param rru", reservation[q], kind[t], p.reservations.value_mrru[q, t])
    for name, count in (("in_use", pairs.in_use), ("idle", pairs.idle)):
        has = np.flatnonzero(count)
        at_pair = (kind[pairs.type[has]], switchboard[pairs.switchboard[has]], reservation[pairs.reservation[has]])
        yield section(f"param {name}", *at_pair, count[has])
    limited = np.flatnonzero(p.reservations.spread_limited)
    yield section(
        "param : LIMITED : spread_limit_milli", reservation[limited], p.reservations.spread_limit_milli[limited]
    )
    yield section(
        "param : AFFINITY : share_milli tolerance_milli",
        reservation[p.affinities.reservation],
        datacenter[p.affinities.datacenter],
        p.affinities.share_milli,
        p.affinities.tolerance_milli,
    )
    weights = p.objective.weights
    yield section("param weight", np.array(list(weights)), np.array(list(weights.values()), float))
    yield iter(["end;"])
