"""FGD's experiment for scores: short arithmetic that says where a pod costs least, replayed in about a second.

A rule is a program in postfix form over ``FEATURES`` of a pod, a server and, for a part of a GPU, a GPU of it. The
place that costs least gets the pod; of equal ones, the first. A server's costs are computed again only when something
was placed on it, which allows no feature that depends on other servers' state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.fgd import ASKED, GPU, Row, asked, models, wanted
from mast_opt.core.jit import compiled, kernel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
FEATURES = (
    "waste",
    "waste_left",
    "room",
    "fill",
    "cpu_left",
    "memory_left",
    "gpu_left",
    "device_left",
    "whole_left",
    "cpu_taken",
    "memory_taken",
    "gpu_taken",
    "asked",
    "type_share",
)
"""By how much fragmentation grows (FGD), fragmentation afterwards; what one more typical pod, and a server full of one
kind of typical pods, could take before less what it could take afterwards; shares of the server's cores, memory and
GPUs, and of the GPU, that are free afterwards; GPUs that are free as a whole afterwards; requests as shares of what is
free before; GPUs asked for; the type's share of the fleet's GPUs. In GPUs where they are no shares."""
UNARY = ("neg", "square", "percent")
"""``percent``: 100 / (1 + exp(-x)), rounded down, as FGD does."""
BINARY = ("+", "-", "*", "/", "min", "max")
CONSTANT = "number"
CODES = (CONSTANT, *FEATURES, *UNARY, *BINARY)
_FIRST_UNARY, _FIRST_BINARY = 1 + len(FEATURES), 1 + len(FEATURES) + len(UNARY)
MOST = 10
"""Most operations of a rule."""
TINY = 1e-9
DEVICES = 8
"""GPUs of a server at most."""

Rule = tuple[str | float, ...]


class Fleet(NamedTuple):
    """Servers and kinds of pods."""

    device: Ints
    """[S, 8] milli-GPUs, 0 where there is no GPU."""
    size: Ints
    """[2, S] millicores and MiB."""
    model: Ints
    """[S] GPU type."""
    type_share: Floats
    """[S] share of the fleet's GPUs that are of the server's type."""
    need: Ints
    """[4, K] milli-GPUs of each GPU, GPUs, millicores, MiB of a kind of pods."""
    accepts: NDArray[np.bool_]
    """[K, types]."""
    share: Floats
    """[K] of all pods of the list."""


def fleet_of(nodes: list[Row], pods: list[Row]) -> tuple[Fleet, dict[tuple[object, ...], int]]:
    """The fleet without pods, and the number of each kind of pods."""
    types = models(nodes)
    found = Counter(kind_of(pod, types) for pod in pods)
    kinds = sorted(found)
    device = np.zeros((len(nodes), DEVICES), np.int64)
    for s, node in enumerate(nodes):
        device[s, : int(node["gpu"])] = GPU
    model = np.array([1 + types.index(node["model"]) if node["model"] else 0 for node in nodes])
    gpus = np.bincount(model, device.sum(axis=1), 1 + len(types))
    accepts = np.array([[not kind[4] or t in kind[4] for t in ["", *types]] for kind in kinds])
    fleet = Fleet(
        device,
        np.array([[int(node[key]) for node in nodes] for key in ("cpu_milli", "memory_mib")]),
        model,
        gpus[model] / max(gpus.sum(), 1),
        np.array([kind[:4] for kind in kinds]).T.copy(),
        accepts,
        np.array([found[kind] for kind in kinds]) / len(pods),
    )
    return fleet, {kind: k for k, kind in enumerate(kinds)}


def kind_of(pod: Row, types: list[str]) -> tuple[int, int, int, int, tuple[str, ...]]:
    """Milli-GPUs of each GPU, GPUs, millicores, MiB and required GPU types."""
    total = asked(pod)
    gpus = int(pod["num_gpu"]) if total else 0
    each = total // gpus if gpus else 0
    return each, gpus, int(pod["cpu_milli"]), int(pod["memory_mib"]), tuple(wanted(pod, types))


def encoded(rule: Rule) -> tuple[Ints, Floats]:
    """Codes and numbers of a program."""
    codes = [0 if isinstance(word, float) else CODES.index(word) for word in rule]
    return np.array(codes), np.array([word if isinstance(word, float) else 0.0 for word in rule])


def arity(word: str | float) -> int:
    return 0 if isinstance(word, float) else 2 if word in BINARY else 1 if word in UNARY else 0


def operations(rule: Rule) -> int:
    return sum(arity(word) > 0 for word in rule)


def written(rule: Rule) -> str:
    """The rule as an expression."""
    stack: list[str] = []
    for word in rule:
        if arity(word) == 2:
            right, left = stack.pop(), stack.pop()
            stack.append(f"{word}({left}, {right})" if word in ("min", "max") else f"({left} {word} {right})")
        elif arity(word) == 1:
            stack.append(f"{word}({stack.pop()})")
        else:
            stack.append(f"{word:.3g}" if isinstance(word, float) else str(word))
    return (
        stack[0].removeprefix("(").removesuffix(")")
        if arity(rule[-1]) == 2 and rule[-1] not in ("min", "max")
        else stack[0]
    )


@kernel
def _waste(device: Ints, cpu: int, memory: int, model: int, fleet: Fleet, out: Floats) -> None:
    """Fragmentation of a server, what one more typical pod could take, and what as many as fit of one kind could."""
    idle, whole = 0, 0
    for d in range(DEVICES):
        idle += device[d]
        whole += device[d] == GPU
    out[0], out[1], out[2] = 0.0, 0.0, 0.0
    if idle == 0:
        return
    last, holds, stranded, copies = -1, 0, 0, 0
    for k in range(fleet.need.shape[1]):
        each, gpus, cores = fleet.need[0, k], fleet.need[1, k], fleet.need[2, k]
        if each != last:
            last, holds, stranded, copies = each, 0, 0, 0
            for d in range(DEVICES if each > 0 else 0):
                fits = device[d] // each
                holds += fits > 0
                copies += fits
                stranded += 0 if fits > 0 else device[d]
        if each == 0 or holds < gpus or cpu < cores or memory < fleet.need[3, k] or not fleet.accepts[k, model]:
            out[0] += fleet.share[k] * idle
            continue
        most = copies // gpus
        if cores > 0:
            most = min(most, cpu // cores)
        out[0] += fleet.share[k] * stranded
        out[1] += fleet.share[k] * each * gpus
        out[2] += fleet.share[k] * each * gpus * most
    for at in range(3):
        out[at] /= GPU


@kernel
def _value(codes: Ints, numbers: Floats, feature: Floats, stack: Floats) -> float:
    top = -1
    for at in range(len(codes)):
        code = codes[at]
        if code == 0:
            top += 1
            stack[top] = numbers[at]
        elif code < _FIRST_UNARY:
            top += 1
            stack[top] = feature[code - 1]
        elif code == _FIRST_UNARY:
            stack[top] = -stack[top]
        elif code == _FIRST_UNARY + 1:
            stack[top] *= stack[top]
        elif code < _FIRST_BINARY:
            stack[top] = np.floor(100 / (1 + np.exp(-stack[top])))
        else:
            right, left = stack[top], stack[top - 1]
            top -= 1
            which = code - _FIRST_BINARY
            if which == 0:
                stack[top] = left + right
            elif which == 1:
                stack[top] = left - right
            elif which == 2:
                stack[top] = left * right
            elif which == 3:
                stack[top] = left / (right if abs(right) > TINY else TINY)
            elif which == 4:
                stack[top] = min(left, right)
            else:
                stack[top] = max(left, right)
    return float(stack[0])


@kernel
def _cost(
    fleet: Fleet,
    k: int,
    s: int,
    device: Ints,
    free: Ints,
    now: Floats,
    codes: Ints,
    numbers: Floats,
    work: Floats,
    trial: Ints,
) -> tuple[float, int]:
    """The least cost of a pod on a server and the GPU that has it; infinite where it does not fit."""
    each, gpus, cores, mib = fleet.need[0, k], fleet.need[1, k], fleet.need[2, k], fleet.need[3, k]
    best, at = np.inf, -1
    if free[0] < cores or free[1] < mib or not fleet.accepts[k, fleet.model[s]]:
        return best, at
    idle, number, holds = 0, 0, 0
    for d in range(DEVICES):
        idle += device[d]
        number += fleet.device[s, d] > 0
        holds += each > 0 and device[d] >= each
    if holds < gpus:
        return best, at
    after, feature, stack = work[0], work[1], work[2]
    for d in range(DEVICES if 0 < each < GPU else 1):
        if 0 < each < GPU:
            seen = device[d] < each
            for earlier in range(d):
                seen = seen or device[earlier] == device[d]
            if seen:
                continue
        left, whole = gpus, 0
        for e in range(DEVICES):
            take = (e == d) if 0 < each < GPU else (left > 0 and each == GPU and device[e] == GPU)
            trial[e] = device[e] - (each if take else 0)
            left -= take
            whole += trial[e] == GPU
        _waste(trial, free[0] - cores, free[1] - mib, fleet.model[s], fleet, after)
        feature[0], feature[1] = after[0] - now[0], after[0]
        feature[2], feature[3] = now[1] - after[1], now[2] - after[2]
        feature[4], feature[5] = (free[0] - cores) / fleet.size[0, s], (free[1] - mib) / fleet.size[1, s]
        feature[6] = (idle - each * gpus) / (GPU * max(number, 1))
        feature[7] = trial[d] / GPU if 0 < each < GPU else 0.0
        feature[8] = whole
        feature[9], feature[10] = cores / max(free[0], 1), mib / max(free[1], 1)
        feature[11], feature[12] = each * gpus / max(idle, 1), each * gpus / GPU
        feature[13] = fleet.type_share[s]
        cost = _value(codes, numbers, feature, stack)
        if np.isnan(cost):
            cost = 1e300
        if cost < best or (cost == best and at >= 0 and device[d] < device[at]):
            best, at = cost, d
    return best, at


@compiled
def _replayed(fleet: Fleet, queue: Ints, codes: Ints, numbers: Floats, taken: NDArray[np.bool_]) -> None:
    """Fill in which pods of the queue, by kind, are admitted."""
    servers, kinds = len(fleet.device), fleet.need.shape[1]
    device, free = fleet.device.copy(), fleet.size.T.copy()
    now, work, trial = np.empty((servers, 3)), np.zeros((3, 32)), np.zeros(DEVICES, np.int64)
    cost, place = np.empty((kinds, servers)), np.zeros((kinds, servers), np.int8)
    seen, version = np.full((kinds, servers), -1, np.int32), np.zeros(servers, np.int32)
    for s in range(servers):
        _waste(device[s], free[s, 0], free[s, 1], fleet.model[s], fleet, now[s])
    for n in range(len(queue)):
        k = queue[n]
        best, at = np.inf, -1
        for s in range(servers):
            if seen[k, s] != version[s]:
                cost[k, s], place[k, s] = _cost(fleet, k, s, device[s], free[s], now[s], codes, numbers, work, trial)
                seen[k, s] = version[s]
            if cost[k, s] < best:
                best, at = cost[k, s], s
        taken[n] = at >= 0
        if at < 0:
            continue
        each, left = fleet.need[0, k], fleet.need[1, k]
        if 0 < each < GPU:
            device[at, place[k, at]] -= each
        else:
            for d in range(DEVICES):
                if left > 0 and device[at, d] == GPU:
                    device[at, d] -= each
                    left -= 1
        free[at, 0] -= fleet.need[2, k]
        free[at, 1] -= fleet.need[3, k]
        version[at] += 1
        _waste(device[at], free[at, 0], free[at, 1], fleet.model[at], fleet, now[at])


def admitted(fleet: Fleet, queue: Ints, rule: Rule) -> NDArray[np.bool_]:
    """Whether each pod of the queue, by kind, is admitted."""
    taken = np.zeros(len(queue), np.bool_)
    _replayed(fleet, queue, *encoded(rule), taken)
    return taken


def allocated(fleet: Fleet, queue: Ints, rule: Rule) -> float:
    """Percent of all GPUs that are allocated when the whole queue has come."""
    size = fleet.need[0] * fleet.need[1]
    return 100 * float(size[queue][admitted(fleet, queue, rule)].sum()) / float(fleet.device.sum())


def sums(*parts: Rule) -> Rule:
    """The sum of programs."""
    return (*parts[0], *(word for part in parts[1:] for word in (*part, "+")))


def quotient(above: str, below: str) -> Rule:
    return above, below, "/"


RULES: dict[str, Rule] = {
    "best fit": ("cpu_left", "memory_left", "+", "gpu_left", "+"),
    "FGD": ("waste", "neg", "percent", "neg"),
    "AlphaEvolve": sums(
        ("cpu_taken",), ("memory_taken",), quotient("memory_taken", "cpu_taken"), quotient("cpu_taken", "memory_taken")
    ),
    "AlphaEvolve with GPUs": sums(
        ("cpu_taken",), ("gpu_taken",), quotient("gpu_taken", "cpu_taken"), quotient("cpu_taken", "gpu_taken")
    ),
}
"""Rules that are known. AlphaEvolve's is -(c + m + m/c + c/m), where c and m are the shares of a server's free cores
and memory that a job takes (Novikov et al., 2025, Figure 6); the server with the highest score gets the job, so its
negative is the cost. It knows no GPUs: a pod that asks for some needs free ones, which is all that they count. In the
second form GPUs take the place of memory."""


def queue_of(order: Sequence[Row], kinds: dict[tuple[object, ...], int], types: list[str]) -> Ints:
    return np.array([kinds[kind_of(pod, types)] for pod in order])


def few_arrivals(pods: list[Row], capacity: int, seed: int) -> list[Row]:
    """Pods of the list in random order until enough is asked of a part of the fleet."""
    order = [pods[at] for at in np.random.default_rng(seed).permutation(len(pods))]
    come = np.cumsum([asked(pod) for pod in order])
    return order[: int(np.searchsorted(come, ASKED * capacity, side="right"))]
