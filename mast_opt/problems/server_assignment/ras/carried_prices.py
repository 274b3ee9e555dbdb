"""Prices of a certificate of server assignment as those of another instance: stocks and reservations are matched."""

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from mast_opt.problems.kind.carried_axes import Match, taken
from mast_opt.problems.server_assignment.problem import Ints, ServerAssignment
from mast_opt.problems.server_assignment.verification.certificate import PRICED, Certificate, Prices, kept_prices


def stocks(problem: ServerAssignment) -> Mapping[str, Mapping[str, Ints]]:
    """Classes by which a certificate counts servers: those of a type at a switchboard."""
    first = problem.stocks.first
    return {"stocks": {"type": problem.servers.type[first], "switchboard": problem.server_switchboard[first]}}


def carried(problem: ServerAssignment, arrays: Mapping[str, NDArray[Any]], match: Match) -> Mapping[str, NDArray[Any]]:
    """Arrays of a certificate in fractions for this instance, with an earlier one's prices where it had the row.

    Raises:
        PlanError: the arrays are no certificate.
    """
    old = kept_prices(arrays)
    affinities = match.rows("affinity")
    rows = (match.rows("stocks"), match.axis("reservation"), match.axis("switchboard"), affinities, affinities)
    prices = (taken(old[name], at) for name, at in zip(PRICED, rows, strict=True))
    return Certificate.in_fractions(Prices(*prices)).arrays()
