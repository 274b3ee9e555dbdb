"""Twenty instances or more of each problem: the best plan known, its bound, and a proof that two checkers judge.

    python -m benchmarks.proofs --viprchk PATH        # adds what is missing to benchmarks/data/proofs.jsonl
    python -m benchmarks.measured_pages

The committed instances come first, those with a program of up to a million entries, then small generated ones, whose
seed is in the name: they are solved by the heuristic and by HiGHS, and the better plan and the larger bound count. Each
proof is changed ten times (``tests.proof.mutants``), and both checkers are asked.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import mast_opt
from mast_opt.core.arrays import FloatArray
from mast_opt.core.errors import UsageError
from mast_opt.planner.bench.results import best_known
from mast_opt.planner.io import checksum, read, read_certificate, read_plan_of
from mast_opt.planner.proof.certificate_prices import certificate_limits, certificate_prices, program_of
from mast_opt.planner.proof.checker import check_folder
from mast_opt.planner.proof.write_proof import PROOF, write_proof
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.mip import Mip
from tests.proof.mutants import OTHER_PROGRAM, SMALL_BYTES, accepted, lines_of, mutant

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "benchmarks" / "data" / "proofs.jsonl"
EACH = 20
MOST_ENTRIES = 1_000_000
MUTANTS = 10
WHOLE = 1e-9
"""Part of a bound that a proof may lack and still prove it."""
SOLVE_S, PROVE_S, MOST_LEAVES = 5.0, 20.0, 4096
MADE: Mapping[str, tuple[str, dict[str, int], str, dict[str, Any]]] = {
    "data-placement": ("standard", {"datasets": 5, "workloads": 6, "regions": 2}, "tetris", {}),
    "job-placement": (
        "features", {"regions": 2, "clusters": 1, "servers": 2, "jobs": 5}, "exhaustive+repair", {"whole_share": 0.0},
    ),
    "server-assignment": ("standard", {"servers": 40, "reservations": 3, "datacenters": 2}, "ras", {}),
    "task-reassignment": ("challenge", {"processes": 6, "machines": 3, "resources": 2}, "twine", {}),
    "resource-allocation": ("packing", {"jobs": 6, "types": 3}, "highs", {}),
}  # fmt: skip
"""Problem → family, its sizes, and our solver with parameters."""


CHECKERS = (("ours", "mutants"), ("theirs", "asked"))
"""Changed proofs that our checker and the reference checker accept, and the number that each was asked about."""


@dataclass(frozen=True, eq=False)
class Case:
    """An instance with the best plan known."""

    problem: Problem[Any]
    mip: Mip
    x: FloatArray
    """The plan in the columns of the program."""
    bound: float
    """The bound to be proven, in the sense of the program."""
    arrays: Mapping[str, Any] | None
    """The certificate."""
    solve_s: float | None
    """Seconds of the solves; None for a committed plan."""


def committed(path: Path) -> Case | None:
    """A committed instance; None where its program is not linear or too large. A large one gets a certificate of our
    solver where its plan has none.
    """
    plan = best_known.folder_of(path)
    if not plan.is_dir():
        return None
    reading, arrays = read_plan_of(read(path), plan), read_certificate(plan)
    if arrays is None and _bytes(path) > SMALL_BYTES:
        _, _, solver, params = MADE[reading.problem.kind]
        found = mast_opt.solve(reading.problem, solver, iterations=1, threads=1, params=params).certificate
        arrays = None if found is None else dict(found.arrays())
    try:
        mip, x = program_of(reading.problem, reading.plan, arrays)
    except UsageError:
        return None
    objective, bound = (reading.problem.sense.minimised(float(reading.fields[name])) for name in ("objective", "bound"))
    value = mip.objective(x)
    same = abs(objective - value) <= WHOLE * max(1.0, abs(objective))
    if len(mip.index) > MOST_ENTRIES:
        return None
    return Case(reading.problem, mip, x, bound if same else value, arrays, None)


def generated(kind: str, seed: int) -> Case:
    """A generated instance, solved by the heuristic and by HiGHS."""
    family, sizes, solver, params = MADE[kind]
    problem: Problem[Any] = mast_opt.generate(kind, family, seed=seed, **sizes)
    began = time.process_time()
    exact = ours = mast_opt.solve(problem, "highs", time_limit_s=SOLVE_S, threads=1)
    if solver != "highs":
        ours = mast_opt.solve(problem, solver, time_limit_s=SOLVE_S, iterations=300, threads=1, params=params or None)
    solve_s = time.process_time() - began
    arrays = None if ours.certificate is None else ours.certificate.arrays()
    programs = [program_of(problem, one.plan, arrays) for one in (ours, exact) if one.plan is not None]
    mip, best = min(programs, key=lambda found: found[0].objective(found[1]))
    bounds = [problem.sense.minimised(one.bound) for one in (ours, exact) if one.bound is not None]
    return Case(problem, mip, best, min(mip.objective(best), max(bounds)), arrays, solve_s)


def row_of(name: str, case: Case, viprchk: Path) -> dict[str, Any]:
    """The proof of a case, as a row."""
    p, mip = case.problem, case.mip
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "proof"
        began = time.process_time()
        found = write_proof(
            mip,
            case.x,
            case.bound,
            folder,
            time_limit_s=PROVE_S,
            most_leaves=MOST_LEAVES,
            rows_of=certificate_limits(p, case.arrays),
            prices=certificate_prices(p, case.arrays, mip),
        )
        seconds, text = time.process_time() - began, (folder / PROOF).read_bytes()
        assert found.bound is not None
        missing = max(0.0, case.bound - float(found.bound)) / max(1.0, abs(case.bound))
        np.savez_compressed(Path(scratch) / "certificate.npz", **(case.arrays or {}))
        return {
            "problem": p.kind,
            "instance": name,
            "checksum": checksum(p),
            "entries": len(mip.index),
            "objective": mip.objective(case.x),
            "bound": case.bound,
            "proven": float(found.bound),
            "missing": missing,
            "leaves": found.leaves,
            "certificate_bytes": (Path(scratch) / "certificate.npz").stat().st_size if case.arrays else None,
            "program_bytes": text.index(b"RTP range"),
            "proof_bytes": len(text),
            "sha256": hashlib.sha256(text).hexdigest(),
            "solve_cpu_s": case.solve_s,
            "prove_cpu_s": round(seconds, 3),
            "check": check_folder(folder).bound == found.bound,
            "viprchk": _believes(viprchk, folder),
            **_changed(folder, random.Random(name), viprchk),
        }


def _believes(viprchk: Path, folder: Path) -> bool:
    """Whether the reference checker accepts a proof."""
    return subprocess.run([viprchk, folder / PROOF], capture_output=True, check=False).returncode == 0


def _changed(folder: Path, rng: random.Random, viprchk: Path) -> dict[str, int]:
    """Counts of changed proofs and of those that were accepted. One about another program is for our checker alone."""
    files, counts = lines_of(folder), dict.fromkeys(("mutants", "ours", "asked", "theirs"), 0)
    for _ in range(MUTANTS):
        changed = mutant(*files, rng)
        counts["mutants"] += 1
        counts["ours"] += accepted(folder, changed)
        if changed[0] not in OTHER_PROGRAM:
            counts["asked"] += 1
            counts["theirs"] += _believes(viprchk, folder)
    return counts


def missing_cases(kind: str, known: set[str], *, large: bool) -> Iterator[tuple[str, Case]]:
    """The cases of a problem that have no row yet: committed instances, then generated ones; or the large
    committed ones alone, which take minutes.
    """
    root = ROOT / "instances" / kind.replace("-", "_")
    paths = [header.parent for header in sorted(root.glob("*/instance.toml"))] + sorted(root.glob("*.json"))
    for path in paths:
        case = committed(path) if (_bytes(path) > SMALL_BYTES) == large and path.stem not in known else None
        if case is not None:
            yield path.stem, case
    for seed in range(1, 1 if large else EACH + 1):
        if len(known) < EACH and f"seed {seed}" not in known:
            yield f"seed {seed}", generated(kind, seed)


def _bytes(path: Path) -> int:
    """Size of an instance's files."""
    return sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path]))


def lines(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row of the page for each problem."""
    made: list[tuple[str, ...]] = []
    for kind in MADE:
        mine = [row for row in rows if row["problem"] == kind]
        if not mine:
            continue
        judged = ", ".join(str(sum(row[name] for row in mine)) for name in ("check", "viprchk"))
        changed = ", ".join(
            f"{sum(row[one] for row in mine)} of {sum(row[of] for row in mine)}" for one, of in CHECKERS
        )
        size = [row["proof_bytes"] / 1000 for row in mine]
        made.append(
            (
                kind,
                f"{len(mine)} ({sum(not row['instance'].startswith('seed') for row in mine)})",
                str(sum(row["missing"] <= WHOLE for row in mine)),
                judged,
                changed,
                f"{statistics.median(size):,.0f} kB; {max(size):,.0f} kB",
                _ratio([(row["proof_bytes"], row["certificate_bytes"]) for row in mine]),
                _ratio([(row["prove_cpu_s"], row["solve_cpu_s"]) for row in mine]),
            )
        )
    return made


def _ratio(pairs: Sequence[tuple[float, float | None]]) -> str:
    """The median of ratios."""
    known = [one / other for one, other in pairs if other]
    return f"{statistics.median(known):.1f}" if known else "—"


def main() -> None:
    """Prove what has no row yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viprchk", type=Path, required=True, help="the reference checker of the VIPR project")
    parser.add_argument("--rows", type=Path, default=ROWS)
    given = parser.parse_args()
    for large, kind in product((False, True), MADE):
        rows = [json.loads(line) for line in given.rows.read_text().splitlines()] if given.rows.exists() else []
        known = {row["instance"] for row in rows if row["problem"] == kind}
        for name, case in missing_cases(kind, known, large=large):
            row = row_of(name, case, given.viprchk)
            with given.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            known.add(name)


if __name__ == "__main__":
    main()
