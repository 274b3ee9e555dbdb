"""Certificate of a server-assignment lower bound: dual prices that can be checked without trusting the search.

For any prices within their boxes the bound is the sum over reservations of what each costs at least at these prices,
less the stocks at theirs (Lagrangian duality: rows that couple reservations, or a reservation's switchboards, are
priced; what is left is minimised exactly).
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import Fault, PlanError
from mast_opt.problems.kind.certificate_format import FILE, ArrayFormat, array_faults, price
from mast_opt.problems.server_assignment.problem import EMBEDDED, SHARE, Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.measures import Measure

Floats = NDArray[np.float64]

EXACT = 1 + 1e-12
"""Prices may exceed their boxes by what rounding does to them."""
MOST_CELLS = 20_000
"""Amounts at a switchboard up to which whole servers are counted, in units: what all worths are multiples of."""


@dataclass(frozen=True, eq=False)
class Prices:
    """Prices of the rows of the formulation. ``docs/heuristics/ras.md`` derives the bound."""

    once: Floats
    """[stocks] of a server of each stock"""
    survive: Floats
    """[Q] of guaranteed capacity, per mrru"""
    loss: Floats
    """[B] of what the pool must stand in for, per mrru; 0 without a pool"""
    affinity_most: Floats
    """Price of each affinity's upper row, [A]."""
    affinity_least: Floats
    """Price of each affinity's lower row, [A]."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the prices by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


@dataclass(frozen=True, eq=False)
class Certificate:
    """Prices, and how far whole servers are counted at them."""

    prices: Prices
    counted_to: Ints
    """[Q] mrru at a switchboard up to which a reservation's whole servers are counted; 0: fractions all the way"""
    other_of: Ints
    """[G] a reservation …"""
    other_survive: Floats
    """[G] … and another price of guaranteed capacity that its levels may choose"""

    @classmethod
    def in_fractions(cls, prices: Prices) -> "Certificate":
        """Certificate of the bound in which no whole servers are counted."""
        none, nothing = np.zeros(0, np.int64), np.zeros(0)
        return cls(prices, np.zeros(len(prices.survive), np.int64), none, nothing)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the certificate as a file keeps them."""
        mine = ("counted_to", "other_of", "other_survive")
        return self.prices.arrays() | {name: getattr(self, name) for name in mine}


PRICED = tuple(item.name for item in fields(Prices))
"""Arrays that hold prices, in the order of ``Prices``."""


def kept_prices(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Floats]:
    """The prices that a file's arrays hold, of whatever instance. Raises PlanError for arrays that hold none."""
    found = array_faults(arrays, {name: price(np.asarray(arrays.get(name, 0)).size) for name in PRICED})
    if found:
        raise PlanError(found)
    return {name: np.asarray(arrays[name]) for name in PRICED}


def read_certificate(problem: ServerAssignment, arrays: Mapping[str, NDArray[Any]]) -> Certificate:
    """The certificate that a file's arrays are.

    Raises:
        PlanError: arrays lack, or have another type or length than the problem's.
    """
    p, affinities = problem, len(problem.affinities)
    others = np.asarray(arrays.get("other_of", np.zeros(0))).size
    reservations = len(p.reservations)
    formats = {
        "once": price(len(p.stocks)),
        "survive": price(reservations),
        "loss": price(len(p.switchboards)),
        "affinity_most": price(affinities),
        "affinity_least": price(affinities),
        "counted_to": ArrayFormat("int64", (reservations,)),
        "other_of": ArrayFormat("int64", (others,)),
        "other_survive": price(others),
    }
    found = array_faults(arrays, formats)
    if found:
        raise PlanError(found)
    own = {name: np.asarray(array) for name, array in arrays.items()}
    prices = Prices(**{name: own[name] for name in PRICED})
    return Certificate(prices, *(own[item.name] for item in fields(Certificate)[1:]))


def faults(
    problem: ServerAssignment,
    certificate: Certificate,
    now: Measure,
    shortfall: float,
    buffer: float,
    slack: Floats,
) -> list[Fault]:
    """Every price out of its box, and whole servers that cannot be counted.

    Args:
        now: what today's assignment holds.
        shortfall, buffer: their prices, per mrru.
        slack: [A] its price, per mrru.
    """
    p, c, found = problem, certificate.prices, []
    if ((c.survive > shortfall * EXACT) & (now.short == 0)).any():
        found.append(Fault(FILE, f"prices up to {shortfall:g}, that of shortfall", column="survive"))
    allowed = 0.0 if p.pool is None else buffer + c.survive[p.pool]
    if c.loss.sum() > allowed * EXACT:
        found.append(Fault(FILE, "prices that add up to at most that of the pool's buffer", column="loss"))
    if ((SHARE * (c.affinity_most + c.affinity_least) > slack * EXACT) & (now.slack_milli == 0)).any():
        found.append(Fault(FILE, "prices up to that of slack", column="affinity_most"))
    to, of = certificate.counted_to, certificate.other_of
    unit = np.gcd.reduce(p.reservations.value_mrru, axis=1, initial=0)
    if (to < 0).any() or (to > np.where(p.reservations.buffer == EMBEDDED, MOST_CELLS * unit, 0)).any():
        words = f"amounts of up to {MOST_CELLS} units, 0 for who has no buffer of its own or no use for any server"
        found.append(Fault(FILE, words, column="counted_to"))
    if len(of) and (of.min() < 0 or of.max() >= len(p.reservations)):
        found.append(Fault(FILE, f"positions of reservations, 0 … {len(p.reservations) - 1}", column="other_of"))
    if (certificate.other_survive > shortfall * EXACT).any():
        found.append(Fault(FILE, f"prices up to {shortfall:g}, that of shortfall", column="other_survive"))
    return found
