"""Partial allocation: each job keeps the part of its rate that the others lose by its presence (Cole et al., EC'13).

On top of an allocation of the highest Π rate^weight, job j keeps

    kept[j] = Π_{k≠j} (rate[k] / rate of k in the best allocation without j)^(weight[k]/weight[j])

What j keeps is worth Π_k rate[k]^(weight[k]/weight[j]) over a number that j's report does not enter. The allocation
maximises that product, so the truth is best. Themis uses it for auctions, Gavel for strategy-proof shares.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mast_opt.problems.kind.problem_data import Floats


def kept_parts(weight: Floats, rate: Floats, rate_without: Floats) -> Floats:
    """[J] the part of its rate that each job keeps, from 0 to 1.

    Args:
        weight: [J] above 0.
        rate: [J] of the best allocation, above 0.
        rate_without: [J, J] in row j, the rates of the best allocation without j, above 0; the entry of j itself
            is not looked at.
    """
    lost = weight * np.log(rate / np.where(np.eye(len(rate), dtype=np.bool_), rate, rate_without))
    parts: Floats = np.minimum(np.exp(lost.sum(axis=1) / weight), 1.0)
    return parts


def partial_allocation(weight: Floats, rate: Floats, best_without: Callable[[int], Floats]) -> Floats:
    """[J] the parts that the jobs keep.

    Args:
        weight, rate: as in ``kept_parts``.
        best_without: position of a job → [J − 1] the rates of the others in the best allocation without it.
    """
    without = np.ones((len(rate), len(rate)))
    for job in range(len(rate)):
        without[job, np.arange(len(rate)) != job] = best_without(job)
    return kept_parts(weight, rate, without)
