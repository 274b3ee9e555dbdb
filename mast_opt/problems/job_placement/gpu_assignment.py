"""GPU assignment of running jobs (job placement): which physical GPUs they hold.

``allocations.gpu_index`` names the first GPU of a row: a row of fractions lies on that one GPU, a row of whole
GPUs on consecutive ones. Rows that name none are read by one rule: after those that do, whole GPUs take the
lowest free ones in table order; then fractions, largest first, go one by one to the GPU with the least room that
still holds them, the lowest of equals.
"""

from dataclasses import dataclass

import numpy as np

from mast_opt.problems.job_placement.units import GPU, WHOLE, Bools, Ints


@dataclass(frozen=True, eq=False)
class Devices:
    """[E] entries: allocation, device of its server, milli-GPUs held there (fractions of one row added up)."""

    row: Ints
    device: Ints
    mgpu: Ints
    misfits: tuple[int, ...]
    """Rows that find no room on the GPUs of their server."""


def read_devices(server_mgpu: Ints, server: Ints, tasks: Ints, need: Ints, index: Ints, indexed: Bools) -> Devices:
    """The devices of every allocation row.

    Args:
        server_mgpu: [S].
        server, tasks, index, indexed: [A].
        need: [A, 3] per task.
    """
    mgpu = need[:, GPU]
    fraction = mgpu < WHOLE
    order = np.lexsort((np.arange(len(server)), np.where(fraction, -mgpu, 0), fraction, ~indexed, server))
    rows: list[int] = []
    devices: list[int] = []
    amounts: list[int] = []
    misfits: list[int] = []
    current = -1
    room: list[int] = []
    for a in order[mgpu[order] > 0].tolist():
        if server[a] != current:
            current = int(server[a])
            room = [WHOLE] * (int(server_mgpu[current]) // WHOLE)
        found = _place(room, int(mgpu[a]), int(tasks[a]), int(index[a]) if indexed[a] else None)
        if found is None:
            misfits.append(a)
            continue
        rows += [a] * len(found)
        devices += list(found)
        amounts += list(found.values())
    row, device, amount = (np.array(part, np.int64) for part in (rows, devices, amounts))
    return Devices(row, device, amount, tuple(misfits))


def _packed(room: list[int], mgpu: int, tasks: int) -> dict[int, int] | None:
    """device → milli-GPUs taken there, each fraction where it leaves least; None if they do not all fit."""
    taken: dict[int, int] = {}
    for _ in range(tasks):
        fits = [(left - taken.get(d, 0), d) for d, left in enumerate(room) if left - taken.get(d, 0) >= mgpu]
        if not fits:
            return None
        device = min(fits)[1]
        taken[device] = taken.get(device, 0) + mgpu
    return taken


def _place(room: list[int], mgpu: int, tasks: int, index: int | None) -> dict[int, int] | None:
    """device → milli-GPUs taken there, subtracted from ``room``; None (and nothing taken) if it does not fit."""
    if mgpu >= WHOLE:
        count = mgpu // WHOLE * tasks
        if count > len(room):
            return None
        if index is not None:
            chosen = list(range(index, index + count))
        else:
            chosen = [d for d, left in enumerate(room) if left == WHOLE][:count]
        taken = dict.fromkeys(chosen, WHOLE)
        if len(chosen) < count:
            return None
    elif mgpu * tasks > WHOLE * len(room):
        return None
    elif index is not None:
        taken = {index: mgpu * tasks}
    else:
        packed = _packed(room, mgpu, tasks)
        if packed is None:
            return None
        taken = packed
    if any(d >= len(room) or room[d] < amount for d, amount in taken.items()):
        return None
    for d, amount in taken.items():
        room[d] -= amount
    return taken
