"""Current state of a server-assignment instance: who has which server, and which limits that breaks."""

import numpy as np

from mast_opt.core.wording import counted
from mast_opt.problems.kind.current_state import BrokenLimit, CurrentState, Known
from mast_opt.problems.server_assignment.problem import SHARE, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure


def current_state(problem: ServerAssignment) -> CurrentState:
    """Every server is known: it has an owner or is free. What a plan may leave as bad as today is listed."""
    p, now = problem, Measure(problem, problem.servers.owner)
    broken = []
    useless = now.given[now.worth == 0]
    pairs, count = np.unique(
        np.stack([p.servers.owner[useless], p.servers.type[useless]], axis=1), axis=0, return_counts=True
    )
    for (q, t), number in zip(pairs.tolist(), count.tolist()):
        index = (p.reservations.labels[q], p.types[t])
        words = f"{index[0]} has {counted(number, 'server')} of type {index[1]}, which are worth nothing to it"
        broken.append(BrokenLimit("worth", index, words))
    for q in np.flatnonzero(now.short > 0).tolist():
        name = p.reservations.labels[q]
        broken.append(BrokenLimit("shortfall", (name,), f"{name} lacks {now.short[q] / 1000:,.12g} RRU"))
    for q, b in np.argwhere(now.excess > 0).tolist():
        index = (p.reservations.labels[q], p.switchboards.labels[b])
        over = f"{now.excess[q, b] / 1000:,.12g} RRU"
        broken.append(BrokenLimit("spread", index, f"{index[0]} is {over} over its spread limit at {index[1]}"))
    for a in np.flatnonzero(now.slack_milli > 0).tolist():
        index = (p.reservations.labels[p.affinities.reservation[a]], p.datacenters[p.affinities.datacenter[a]])
        off = f"{now.slack_milli[a] / SHARE / 1000:,.12g} RRU"
        broken.append(BrokenLimit("affinity", index, f"{index[0]} is off its share in {index[1]} by {off}"))
    servers = float(len(p.servers))
    return CurrentState((Known("servers", servers, servers),), tuple(broken))
