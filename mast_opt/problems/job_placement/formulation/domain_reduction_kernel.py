"""Compiled loop of job placement's domain reduction: servers of every option, up to the first that is large enough."""

from mast_opt.core.jit import entry
from mast_opt.problems.job_placement.units import CPU, GPU, MEMORY, RACK, SERVER, WHOLE, Bools, Ints


@entry
def mark_possible(
    first: Ints,
    last: Ints,
    rack: Ints,
    room: Ints,
    need: Ints,
    tier: Ints,
    tasks: Ints,
    within: Ints,
    possible: Bools,
) -> None:
    """Sets ``possible`` [o] where the servers of one place (a server, a rack or all of them) hold every task.

    Args:
        first, last: [o] the option's servers are first, …, last − 1 of those below, rack by rack.
        rack: [S]
        room: [S, 3, P] what each server has for work of a tier.
        need: [o, 3] of one task.
        tier, tasks, within: [o] of the job.
    """
    for o in range(len(first)):
        mgpu, mcores, mib = need[o, GPU], need[o, CPU], need[o, MEMORY]
        total = 0
        for s in range(first[o], last[o]):
            if within[o] == SERVER or (within[o] == RACK and s > first[o] and rack[s] != rack[s - 1]):
                total = 0
            most = tasks[o]
            if mgpu >= WHOLE:
                most = min(most, room[s, GPU, tier[o]] // WHOLE // (mgpu // WHOLE))
            elif mgpu > 0:
                most = min(most, room[s, GPU, tier[o]] // mgpu)
            if mcores > 0:
                most = min(most, room[s, CPU, tier[o]] // mcores)
            if mib > 0:
                most = min(most, room[s, MEMORY, tier[o]] // mib)
            total += most
            if total >= tasks[o]:
                possible[o] = True
                break
