"""Delta evaluation of moves in twine: load and balance costs and the excess of the machines that a change touches.

Kernels on plain arrays, small enough to be inlined; every one returns the costs after the change, not the difference.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.arrays import FloatArray
from mast_opt.core.exact_sums_jit import inlined


@inlined
def left_cost(price: FloatArray, feature: FloatArray, level: FloatArray, process: int, machine: int) -> float:
    """Cost of the machine without the process."""
    cost = 0.0
    for j in range(price.shape[0]):
        cost += price[j] * max(0.0, level[machine, j] - feature[process, j])
    return cost


@inlined
def joined_cost(price: FloatArray, feature: FloatArray, level: FloatArray, process: int, machine: int) -> float:
    """Cost of the machine with the process."""
    cost = 0.0
    for j in range(price.shape[0]):
        cost += price[j] * max(0.0, level[machine, j] + feature[process, j])
    return cost


@inlined
def replaced_cost(
    price: FloatArray, feature: FloatArray, level: FloatArray, leaver: int, joiner: int, machine: int
) -> float:
    """Cost of the machine with one process in the place of another."""
    cost = 0.0
    for j in range(price.shape[0]):
        cost += price[j] * max(0.0, level[machine, j] + feature[joiner, j] - feature[leaver, j])
    return cost


@inlined
def shifted_cost(
    price: FloatArray, feature: FloatArray, level: FloatArray, process: int, source: int, target: int
) -> float:
    """Cost of both machines after the process has gone from one to the other."""
    cost = 0.0
    for j in range(price.shape[0]):
        f = feature[process, j]
        cost += price[j] * (max(0.0, level[source, j] - f) + max(0.0, level[target, j] + f))
    return cost


@inlined
def swapped_cost(
    price: FloatArray, feature: FloatArray, level: FloatArray, p: int, q: int, source: int, target: int
) -> float:
    """Cost of both machines after p, on the source, and q, on the target, have changed places."""
    cost = 0.0
    for j in range(price.shape[0]):
        f = feature[p, j] - feature[q, j]
        cost += price[j] * (max(0.0, level[source, j] - f) + max(0.0, level[target, j] + f))
    return cost


@inlined
def left_excess(
    scarcity: FloatArray, feature: FloatArray, level: FloatArray, slack: FloatArray, process: int, machine: int
) -> float:
    """Weighted excess of the machine without the process."""
    excess = 0.0
    for k in range(scarcity.shape[0]):
        excess += scarcity[k] * max(0.0, level[machine, k] - feature[process, k] - slack[machine, k])
    return excess


@inlined
def joined_excess(
    scarcity: FloatArray, feature: FloatArray, level: FloatArray, slack: FloatArray, process: int, machine: int
) -> float:
    """Weighted excess of the machine with the process."""
    excess = 0.0
    for k in range(scarcity.shape[0]):
        excess += scarcity[k] * max(0.0, level[machine, k] + feature[process, k] - slack[machine, k])
    return excess


@inlined
def replaced_excess(
    scarcity: FloatArray,
    feature: FloatArray,
    level: FloatArray,
    slack: FloatArray,
    leaver: int,
    joiner: int,
    machine: int,
) -> float:
    """Weighted excess of the machine with one process in the place of another."""
    excess = 0.0
    for k in range(scarcity.shape[0]):
        f = feature[joiner, k] - feature[leaver, k]
        excess += scarcity[k] * max(0.0, level[machine, k] + f - slack[machine, k])
    return excess


@inlined
def firm_room(
    firm: NDArray[np.int32], feature: FloatArray, spare: FloatArray, home: NDArray[np.int32], process: int, machine: int
) -> bool:
    """Whether the machine has room for the transient needs of the process; it has for those at home there."""
    room = True
    for at in range(firm.shape[0]):
        room &= feature[process, firm[at]] <= spare[machine, at]
    return room or home[process] == machine


@inlined
def firm_room_replaced(
    firm: NDArray[np.int32],
    feature: FloatArray,
    spare: FloatArray,
    home: NDArray[np.int32],
    leaver: int,
    joiner: int,
    machine: int,
) -> bool:
    """Whether the machine has room for the joiner's transient needs once the other has left."""
    given = 0.0 if home[leaver] == machine else 1.0
    room = True
    for at in range(firm.shape[0]):
        k = firm[at]
        room &= feature[joiner, k] - given * feature[leaver, k] <= spare[machine, at]
    return room or home[joiner] == machine
