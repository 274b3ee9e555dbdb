"""Themis (NSDI'20): an auction of GPUs among apps by finish-time fairness.

An app bids its value V = 1/ρ for each number of GPUs, where ρ is its finish time over that on a cluster of its own.
The auction maximises Π V, and each app keeps a fraction of what it wins (partial allocation), so that no bid but the
true one does better. The worst-off apps are offered GPUs first.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray
from mast_opt.core.errors import UsageError
from mast_opt.core.solve_result import Status
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.program import Program
from mast_opt.problems.resource_allocation.arrays import names


@dataclass(frozen=True)
class Auction:
    """Result of an auction among apps; None where no division gives every app a value above 0."""

    status: Status
    gpus: IntArray | None
    """[A] won, before the payment."""
    value: FloatArray | None
    """[A] of what was won."""
    product: float | None
    """Π of values, which is maximised."""
    kept: FloatArray | None
    """[A] fraction of its win that each app keeps; the rest is its payment, and goes to whoever can use it."""

    @property
    def entitled(self) -> FloatArray | None:
        """[A] GPUs that each app keeps on average: kept · gpus."""
        return None if self.gpus is None or self.kept is None else self.kept * self.gpus


def bids(elapsed_s: ArrayLike, remaining_s: ArrayLike, independent_s: ArrayLike, speedup: ArrayLike) -> FloatArray:
    """[A, R + 1] value of 0 to R GPUs: 1/ρ, with ρ = (elapsed + remaining/speedup)/independent; 0 without progress.

    Args:
        elapsed_s: [A] since each app began.
        remaining_s: [A] work that is left, in seconds on one GPU.
        independent_s: [A] finish time on a cluster of its own, 1/n of the shared one.
        speedup: [A, R + 1] with each number of GPUs, over one.
    """
    rate = numbers("speedup", speedup, (None, None))
    elapsed = numbers("elapsed_s", elapsed_s, (len(rate),))[:, None]
    work = numbers("remaining_s", remaining_s, (len(rate),), above=0.0)[:, None]
    alone = numbers("independent_s", independent_s, (len(rate),), above=0.0)[:, None]
    value: FloatArray = alone * rate / (elapsed * rate + work)
    return value


def worst_off(ratio: ArrayLike, fairness: float) -> BoolArray:
    """[A] the apps that are offered GPUs: a share 1 − fairness with the highest finish-time ratios, ≥ 1 app."""
    rho = numbers("ratio", ratio, (None,))
    if not 0 <= fairness < 1:
        raise UsageError(f"fairness is {fairness:g}; expected a number from 0, below 1")
    offered = np.zeros(len(rho), np.bool_)
    count = max(1, int(np.ceil(round((1 - fairness) * len(rho), 9))))
    offered[np.argsort(-rho, kind="stable")[:count]] = True
    return offered


def solve(value: ArrayLike, gpus: int, *, solver: str = "highs") -> Auction:
    """Themis' auction of GPUs among apps, solved.

    Args:
        value: [A, R + 1] bid of each app for 0 to R GPUs.
        gpus: GPUs that are offered.
        solver: as in ``mast_opt.solve``.
    """
    table = numbers("value", value, (None, None))
    found = tables(table, gpus).solve(solver)
    if found.share is None or found.rate is None:
        return Auction(found.status, None, None, None, None)
    app, size = np.nonzero(table > 0)
    won = np.zeros(len(table), np.int64)
    chosen = found.share > 0.5
    won[app[chosen]] = size[chosen]
    return Auction(found.status, won, found.rate, float(found.rate.prod()), found.kept)


def tables(value: ArrayLike, gpus: int) -> Program:
    """The program of the policy Themis: a configuration for each app and number of GPUs with a value above 0."""
    table = numbers("value", value, (None, None))
    app, size = np.nonzero(table > 0)
    label = [f"a{a}-{n}" for a, n in zip(app.tolist(), size.tolist())]
    held = np.flatnonzero(size > 0)
    return Program(
        policy="nash",
        mechanism="partial-allocation",
        whole=True,
        resources={"labels": ["gpu"], "amount": [float(gpus)]},
        jobs={"labels": names("a", len(table))},
        configurations={"labels": label},
        members={"configuration": np.arange(len(app)), "job": app, "rate": table[app, size]},
        uses={"configuration": held, "resource": np.zeros(len(held), np.int64), "amount": size[held]},
    )
