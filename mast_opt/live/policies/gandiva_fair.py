"""Gandiva-Fair (EuroSys'20): shares of GPUs by tickets, and trading of fast GPUs for slow ones.

Tickets give each user a share of all GPUs, and what a user cannot use goes to the others (``ticket_shares``). On
GPUs of several types each user then owns that share of every type. ``solve`` trades: it maximises the total value,
subject to no user valuing its holdings below its own share.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from mast_opt.core.arrays import FloatArray
from mast_opt.core.solve_result import Status
from mast_opt.live.policies.arguments import numbers
from mast_opt.live.policies.program import Program
from mast_opt.problems.resource_allocation.arrays import names


@dataclass(frozen=True)
class Trade:
    """Holdings after trading of U users in G GPU types. Fields computed by the solve are None if a limit stopped it.

    Prices are the duals of the program: the gain of total value per unit by which a limit is relaxed.
    """

    status: Status
    fair_gpus: FloatArray
    """[U, G] GPUs before trading: each user's ticket share of each type."""
    fair_value: FloatArray
    """[U] value of each user's share before trading; ``value`` is at least as high."""
    gpus: FloatArray | None
    """[U, G] GPUs held after trading."""
    value: FloatArray | None
    """[U] value of each user's holdings."""
    gpu_price: FloatArray | None
    """[G] total value of one more GPU; the ratio of two of them is the price of one type in GPUs of the other."""
    share_price: FloatArray | None
    """[U] total value lost for each unit of value that the user is guaranteed; above 0 for those who sell fast GPUs."""

    @property
    def total(self) -> float | None:
        """Sum of the users' values after the trade."""
        return None if self.value is None else float(self.value.sum())


def ticket_shares(tickets: ArrayLike, demand: ArrayLike, gpus: float) -> FloatArray:
    """[U] GPUs of each user: by tickets, at most its demand; what it cannot use goes to the others by their tickets.

    Args:
        tickets: [U] above 0.
        demand: [U] GPUs that the user's jobs could use together.
        gpus: total number of GPUs.

    Raises:
        UsageError: an argument has another shape, or is not a finite number in its range.
    """
    ticket = numbers("tickets", tickets, (None,), above=0.0)
    wanted = numbers("demand", demand, ticket.shape)
    total = float(numbers("gpus", gpus, ()))
    if wanted.sum() <= total:
        return wanted
    order = np.argsort(wanted / ticket, kind="stable")  # the first in this order have enough first
    taken = np.r_[0.0, np.cumsum(wanted[order])[:-1]]
    claims = np.cumsum(ticket[order][::-1])[::-1]
    level = (total - taken) / claims  # GPUs per ticket if those before have their demand, and nobody else has
    short = int(np.argmax(level < (wanted / ticket)[order]))
    shares: FloatArray = np.minimum(wanted, ticket * level[short])
    return shares


def solve(
    value: ArrayLike,
    gpus: ArrayLike,
    *,
    tickets: ArrayLike = 1.0,
    demand: ArrayLike | None = None,
    solver: str = "highs",
) -> Trade:
    """Holdings of GPUs (Gandiva-Fair) of the highest total value such that no user is worse off than with its own
    share.

    Args:
        value: [U, G] rate of a user's work per GPU of each type, such as speedups over the slowest type.
        gpus: [G] GPUs of each type.
        tickets: [U] positive tickets; equal by default.
        demand: [U] GPUs of all types that a user's jobs can use together; unlimited unless given.
        solver: as in ``mast_opt.solve``.

    Raises:
        UsageError: an argument has another shape, or is not a finite number in its range.
    """
    worth, _, wanted, fair = _inputs(value, gpus, tickets, demand)
    fair_value = (worth * fair).sum(axis=1)
    found = tables(value, gpus, tickets=tickets, demand=demand).solve(solver)
    if found.share is None or found.prices is None:
        return Trade(found.status, fair, fair_value, None, None, None, None)
    held = found.share.reshape(worth.shape) * wanted[:, None]
    prices = found.prices
    return Trade(found.status, fair, fair_value, held, found.rate, prices["resource_price"], prices["floor_price"])


def tables(value: ArrayLike, gpus: ArrayLike, *, tickets: ArrayLike = 1.0, demand: ArrayLike | None = None) -> Program:
    """The program of the policy Gandiva-Fair as a resource allocation: a share is a part of the user's demand, held in
    GPUs of one type.
    """
    worth, supply, wanted, fair = _inputs(value, gpus, tickets, demand)
    users, types = names("u", len(worth)), names("g", len(supply))
    label = [f"{user}-{kind}" for user in users for kind in types]
    user, kind = (axis.ravel() for axis in np.indices(worth.shape))
    every = np.arange(worth.size)
    return Program(
        policy="total-rate",
        resources={"labels": types, "amount": supply},
        jobs={"labels": users, "min_rate": (worth * fair).sum(axis=1)},
        configurations={"labels": label},
        members={"configuration": every, "job": user, "rate": worth.ravel() * wanted[user]},
        uses={"configuration": every, "resource": kind, "amount": wanted[user]},
    )


def _inputs(
    value: ArrayLike, gpus: ArrayLike, tickets: ArrayLike, demand: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Gandiva-Fair's checked arguments: values [U, G], supply [G], demand [U] and fair shares [U, G]."""
    supply = numbers("gpus", gpus, (None,))
    worth = numbers("value", value, (None, len(supply)))
    total = float(supply.sum())
    wanted = np.minimum(numbers("demand", total if demand is None else demand, (len(worth),)), total)
    shares = ticket_shares(numbers("tickets", tickets, (len(worth),), above=0.0), wanted, total)
    return worth, supply, wanted, shares[:, None] * (supply / max(total, 1e-300))
