"""Certificate of a data-placement lower bound: dual prices that can be checked without trusting the search.

For any prices ≥ 0 within the boxes below, the bound is the sum of the cheapest cell of every workload, the
cheapest set of replicas of every dataset and a constant (Lagrangian duality: every relaxed row is priced, what is
left is minimised exactly).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mast_opt.core.errors import Fault, PlanError
from mast_opt.problems.data_placement.problem import OBJECTIVE, TERMS, DataPlacement
from mast_opt.problems.data_placement.verification import certificate_bound
from mast_opt.problems.data_placement.verification.certificate_tree_cuts import KEPT, KeptTrees
from mast_opt.problems.data_placement.verification.spectral_bound import Spectrum, spectral_bound
from mast_opt.problems.kind.certificate_format import FILE, LARGEST_PRICE, TEXT, ArrayFormat, array_faults, price

ROUNDING = 1e-10
"""Relative allowance for the rounding of sums."""
LARGEST = 2**52
"""Largest size, so that it is exact in floating point."""


@dataclass(frozen=True, eq=False)
class Certificate(certificate_bound.KeptPrices):
    """Prices on the rows of the formulation. ``docs/heuristics/tetris.md`` derives the bound."""

    spectrum: Spectrum | None = None
    """Data that proves a spectral bound, where there is one."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Arrays of the certificate as a file keeps them; ``from_arrays`` reads them back."""
        names = [term for term, weight in self.weights.items() if weight or not OBJECTIVE[term].unstated]
        return {
            "weight_names": np.array(names),
            "weights": np.array([self.weights[name] for name in names]),
            **{name: getattr(self, name) for name in _ARRAYS},
            **{name: getattr(self.trees, field) for name, field in KEPT.items()},
            **(
                {}
                if self.spectrum is None
                else {name: getattr(self.spectrum, field) for name, field in _SPECTRUM.items()}
            ),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "Certificate":
        """Raises PlanError naming every array that a file lacks or holds in another type."""
        spectral = any(name in arrays for name in _SPECTRUM)
        names = ("weight_names", "weights", *_ARRAYS, *KEPT, *(_SPECTRUM if spectral else ()))
        faults = array_faults(arrays, {name: ArrayFormat(_DTYPES.get(name, "float64")) for name in names})
        if not faults and (arrays["weight_names"].ndim != 1 or arrays["weights"].shape != arrays["weight_names"].shape):
            faults.append(Fault(FILE, "one weight for each of weight_names", column="weights"))
        if faults:
            raise PlanError(faults)
        stated = dict(zip(arrays["weight_names"].tolist(), arrays["weights"].tolist()))
        weights = {name: 0.0 for name, term in OBJECTIVE.items() if term.later} | stated
        trees = KeptTrees(**{field: arrays[name] for name, field in KEPT.items()})
        spectrum = Spectrum(**{field: arrays[name] for name, field in _SPECTRUM.items()}) if spectral else None
        return cls(weights, trees=trees, spectrum=spectrum, **{name: arrays[name] for name in _ARRAYS})

    def bound(self, problem: DataPlacement) -> float:
        """The lower bound that prices and spectrum prove for Σ weight · term.

        Raises:
            PlanError: the prices do not fit the problem, or lie outside their boxes.
        """
        bound = self.bound_by_prices(problem)
        return bound if self.spectrum is None else max(bound, spectral_bound(problem, self.weights, self.spectrum))

    def bound_by_prices(self, problem: DataPlacement) -> float:
        """The lower bound that the prices prove.

        Raises:
            PlanError: the prices do not fit the problem, or lie outside their boxes.
        """
        self._check(problem)
        trees = certificate_bound.tree_charges(self, problem)
        work, data = (
            certificate_bound.cheapest_cells(self, problem, trees),
            certificate_bound.cheapest_sets(self, problem, trees),
        )
        parts = (*work, *data, *certificate_bound.constant(self, problem), 0.0 if trees is None else -trees.excess)
        return sum(parts) - ROUNDING * sum(abs(part) for part in parts)

    def _check(self, problem: DataPlacement) -> None:
        """Check that the certificate fits the problem. Raises PlanError."""
        p = problem
        regions, kinds, tiers, reads = len(p.regions), len(p.gpu_types), len(p.tiers), len(p.reads)
        if self.weights.keys() != TERMS.keys():
            raise PlanError([Fault(FILE, f"a weight for each of {', '.join(TERMS)}", column="weight_names")])
        rows = 1 + (self.gang.shape[1] if self.gang.ndim == 2 else 0)
        formats = {
            "read_level": ArrayFormat("uint16", (reads, regions)),
            "read_cap": price(reads),
            "worst": price(regions, kinds, tiers, rows),
            "over": price(regions, kinds, tiers, rows),
            "under": price(regions, kinds),
            "cpu": price(regions),
            "storage": price(regions),
            "ingress": price(regions),
            "quota": price(len(p.cpu_quotas)),
            "gang": ArrayFormat("int64", (kinds, rows - 1), 1, LARGEST),
        }
        faults = array_faults({name: getattr(self, name) for name in formats}, formats)
        if not faults:
            faults = self._outside_boxes(p)
            faults += [Fault(FILE, expected, column=f"tree_{name}") for name, expected in self.trees.outside(p)]
            if not ((self.trees.price >= 0) & (self.trees.price <= LARGEST_PRICE)).all():
                faults.append(Fault(FILE, f"prices from 0 to {LARGEST_PRICE:g}", column="tree_price"))
        if faults:
            raise PlanError(faults)

    def _outside_boxes(self, p: DataPlacement) -> list[Fault]:
        """Faults of a data placement's certificate: prices outside of their limits."""
        remote = certificate_bound.remote_cap(p, self.weights)
        supplied = p.regions.supply_mgpu > 0
        peak = self.weights["peak"] * p.tier_weight
        per_gpu = 1 / np.maximum(p.regions.supply_mgpu.sum(axis=0), 1)
        over = self.weights["overload"] * p.tier_weight * per_gpu[:, None] * (1 + 1e-12)
        tests = {
            "read_cap": remote is not None and bool((self.read_cap > remote * (1 + 1e-12)).any()),
            "worst": bool((self.worst.sum(axis=(0, 3)) > peak * (1 + 1e-12)).any())
            or bool(self.worst[~supplied].any()),
            "over": bool((self.over.sum(axis=3) > over).any()) or bool(self.over[~supplied].any()),
            "under": bool((self.under > self.weights["idle"] * per_gpu * (1 + 1e-12)).any())
            or bool(self.under[~supplied].any()),
            "ingress": bool(self.ingress[~p.regions.ingress_limited].any()),
        }
        return [Fault(FILE, "prices within their boxes", column=name) for name, bad in tests.items() if bad]


def certified_bound(problem: DataPlacement, arrays: Mapping[str, NDArray[Any]]) -> float:
    """The bound that a file's arrays prove for the objective; where it is lexicographic, for its first term.

    Raises:
        PlanError: the arrays are no certificate, do not fit the problem, or bound another objective.
    """
    certificate = Certificate.from_arrays(arrays)
    objective, weights = problem.objective, bounded_weights(problem)
    if dict(certificate.weights) != weights:
        meant = f"the term {objective.order[0]} alone" if objective.lexicographic else "the instance's weights"
        raise PlanError([Fault(FILE, f"prices for {meant}", column="weights", value=str(dict(certificate.weights)))])
    return max(0.0, certificate.bound(problem))  # every term is a penalty


def bounded_weights(problem: DataPlacement) -> dict[str, float]:
    """Weights of what a certificate bounds: the objective, or its first term where it is lexicographic."""
    weights, order = dict(problem.objective.weights), problem.objective.order
    return dict.fromkeys(weights, 0.0) | {order[0]: 1.0} if order else weights


_DTYPES = {"weight_names": TEXT, "read_level": "uint16", "gang": "int64"}
_DTYPES |= dict.fromkeys(("tree_root", "tree_region", "tree_limit", "tree_start"), "int64")
_DTYPES |= dict.fromkeys(("tree_read", "tree_parent"), "int32")
_ARRAYS = ("read_level", "read_cap", "worst", "over", "under", "cpu", "storage", "ingress", "quota", "gang")
_SPECTRUM = {f"spectrum_{field}": field for field in ("shift", "vectors", "drop", "level")}
"""Array of a file → field of ``Spectrum``."""
