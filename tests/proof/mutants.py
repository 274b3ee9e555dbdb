"""Wrong proofs, made from right ones by one change each; no checker may accept any.

    python -m tests.proof.mutants --cases 1000 --seed 1 [--viprchk PATH] [FOLDER ...]

proves the bounds of all committed instances with few columns, or takes the proofs in folders of ``mast-opt prove``,
changes each as many times, and counts those that are accepted. A reference checker reads no .mps file: it is asked only
about changes that leave the program as it is.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

from mast_opt.planner.bench.results import best_known
from mast_opt.planner.io import read, read_certificate, read_plan_of
from mast_opt.planner.proof.certificate_prices import certificate_limits, certificate_prices
from mast_opt.planner.proof.checker import Refused, check_folder
from mast_opt.planner.proof.write_proof import PROGRAM, PROOF, Proven, write_proof
from mast_opt.planner.solving.export_files import formulated

ROOT = Path(__file__).parents[2] / "instances"
SMALL_BYTES = 10_000
"""Size of files up to which an instance is proven here."""
NOT_LINEAR = ("nash", "harmonic", "finish-time-fairness")
"""Instances with a policy that is no linear program."""
Mutant = tuple[str, list[str], list[str]]
"""What was changed, and the lines of both files."""


def small_instances() -> list[Path]:
    """The committed instances with small files, a linear objective and a plan."""
    folders = [header.parent for header in sorted(ROOT.glob("*/*/instance.toml")) if "traces" not in header.parts]
    return [path for path in folders + sorted(ROOT.glob("*/*.json")) if _is_small(path)]


def _is_small(path: Path) -> bool:
    if not best_known.folder_of(path).is_dir() or path.stem in NOT_LINEAR:
        return False
    return sum(file.stat().st_size for file in (path.iterdir() if path.is_dir() else [path])) <= SMALL_BYTES


def prove(path: Path, folder: Path) -> tuple[Proven, float]:
    """The proof of a committed instance's best plan, and the bound in the sense of its program that it should reach."""
    plan = best_known.folder_of(path)
    reading, arrays = read_plan_of(read(path), plan), read_certificate(plan)
    formulation = formulated(reading.problem)
    x = formulation.encode(reading.plan)
    objective, stated = (
        reading.problem.sense.minimised(float(reading.fields[name])) for name in ("objective", "bound")
    )
    target = formulation.mip.objective(x)
    if abs(objective - target) <= 1e-9 * max(1.0, abs(objective)):
        target = stated
    found = write_proof(
        formulation.mip,
        x,
        target,
        folder,
        time_limit_s=60.0,
        most_leaves=500,
        rows_of=certificate_limits(reading.problem, arrays),
        prices=certificate_prices(reading.problem, arrays, formulation.mip),
    )
    return found, target


def mutant(program: list[str], proof: list[str], rng: random.Random) -> Mutant:
    """One change of a proof that makes it wrong, drawn at random among those that it allows."""
    while True:
        name = rng.choice(list(CHANGES))
        files = list(program), list(proof)
        if CHANGES[name](*files, rng):
            return name, *files


def _raise_bound(program: list[str], proof: list[str], rng: random.Random) -> bool:
    """A lower end that nothing proves; half of the time the last step states it as well."""
    at = _line(proof, "RTP")
    _, _, low, high = proof[at].split()
    raised = Fraction(low) + Fraction(rng.randint(1, 1000), 10**12) * max(Fraction(1), abs(Fraction(low)))
    proof[at] = f"RTP range {raised} {high}"
    if rng.random() < 0.5:
        name, sense, _, *rest = proof[-1].split()
        proof[-1] = " ".join([name, sense, str(raised), *rest])
    return True


def _spoil_solution(program: list[str], proof: list[str], rng: random.Random) -> bool:
    """A solution that is none, or an upper end that it does not reach."""
    at = _line(proof, "SOL") + 1
    name, count, *rest = proof[at].split()
    integers = set(proof[_line(proof, "INT") + 1].split())
    if rng.random() < 0.3 or not rest:
        line = _line(proof, "RTP")
        _, _, low, high = proof[line].split()
        proof[line] = f"RTP range {low} {Fraction(high) - Fraction(1, 10**12) * max(Fraction(1), abs(Fraction(high)))}"
        return True
    entry = 2 * rng.randrange(int(count))
    value = Fraction(rest[entry + 1])
    rest[entry + 1] = str(value + Fraction(1, 2) if rest[entry] in integers else -1 - value)
    proof[at] = " ".join([name, count, *rest])
    return True


def _change_multiplier(program: list[str], proof: list[str], rng: random.Random) -> bool:
    """Another multiplier in a step."""
    rule = rng.choice(["{ lin ", "{ rnd "])
    steps = [at for at, line in enumerate(proof) if rule in line and f"{rule}0" not in line]
    if not steps:
        return False
    at = rng.choice(steps)
    head, reason = proof[at].split(rule)
    words = reason.split()
    entry = 2 + 2 * rng.randrange(int(words[0]))
    old = Fraction(words[entry])
    words[entry] = str(rng.choice([-old, old + old / 10**6, old + Fraction(1, 10**9), Fraction(0)]))
    proof[at] = f"{head}{rule}{' '.join(words)}"
    return True


def _move_split(program: list[str], proof: list[str], rng: random.Random) -> bool:
    """An assumption that leaves a gap between the sides of a split, or a step that forgets to join them."""
    steps = [at for at, line in enumerate(proof) if "{ asm }" in line or "{ uns " in line]
    if not steps:
        return False
    at = rng.choice(steps)
    words = proof[at].split()
    if "asm" in words:
        words[2] = str(int(words[2]) + (1 if words[1] == "G" else -1))
    else:
        first = words.index("uns") + 1
        words[first + 1] = words[first + 3]
    proof[at] = " ".join(words)
    return True


def _change_row(program: list[str], proof: list[str], rng: random.Random) -> bool:
    """Another number in a constraint that the proof says is the program's."""
    first, last = _line(proof, "CON") + 1, _line(proof, "RTP")
    at = rng.randrange(first, last)
    words = proof[at].split()
    entry = rng.choice([2, *range(5, len(words), 2)])
    words[entry] = str(Fraction(words[entry]) + rng.choice([-1, 1]) * Fraction(1, rng.choice([1, 10**6])))
    proof[at] = " ".join(words)
    return True


def _change_program(program: list[str], proof: list[str], rng: random.Random) -> bool:
    """Another number in the .mps file, as where it is of another instance."""
    lines = [at for at, line in enumerate(program) if line[:1] == " " and line.split()[-1][-1].isdigit() and
             at > program.index("COLUMNS") and "MARKER" not in line]  # fmt: skip
    at = rng.choice(lines)
    words = program[at].split()
    words[-1] = repr(float(words[-1]) + rng.choice([-1.0, 0.5]))
    program[at] = " " + " ".join(words)
    return True


def _line(lines: list[str], word: str) -> int:
    """The line that begins with a word."""
    return next(at for at, line in enumerate(lines) if line.startswith(word + " "))


CHANGES: dict[str, Callable[[list[str], list[str], random.Random], bool]] = {
    "bound": _raise_bound,
    "solution": _spoil_solution,
    "multiplier": _change_multiplier,
    "split": _move_split,
    "row": _change_row,
    "program": _change_program,
}
OTHER_PROGRAM = ("row", "program")
"""Changes after which a proof states another program than its .mps file, of which it may be right."""


def accepted(folder: Path, files: Mutant) -> bool:
    """Whether our checker accepts a mutant, which is written to a folder."""
    _, program, proof = files
    (folder / PROGRAM).write_text("\n".join(program) + "\n", encoding="utf-8")
    (folder / PROOF).write_text("\n".join(proof) + "\n", encoding="utf-8")
    try:
        check_folder(folder)
    except Refused:
        return False
    return True


def lines_of(folder: Path) -> tuple[list[str], list[str]]:
    """Lines of both files of a proof."""
    program, proof = ((folder / name).read_text(encoding="utf-8").splitlines() for name in (PROGRAM, PROOF))
    return program, proof


def proofs(folders: list[Path], scratch: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Name and files of each proof, which is accepted as it is."""
    for path in folders or small_instances():
        folder = path if folders else scratch / path.parent.name / path.stem
        if not folders:
            prove(path, folder)
        check_folder(folder)
        yield f"{path.parent.name}/{path.stem}", *lines_of(folder)


def main() -> Iterator[str]:
    """The counts, a line for each proof and one for each kind of change."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="proofs; those of small committed instances if none")
    parser.add_argument("--cases", type=int, default=1000, help="changes of each proof")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--viprchk", type=Path, help="the reference checker of the VIPR project")
    options = parser.parse_args()
    drawn, wrong, asked, believed = (Counter[str]() for _ in range(4))

    def counts(name: str) -> str:
        """A line of the counts."""
        return f"{name}: {wrong[name]} of {drawn[name]} accepted; by viprchk {believed[name]} of {asked[name]}"

    with tempfile.TemporaryDirectory() as scratch:
        changed = Path(scratch) / "changed"
        changed.mkdir()
        for name, *files in proofs(options.folders, Path(scratch)):
            rng = random.Random(f"{options.seed} {name}")
            for case in range(options.cases):
                files_of = mutant(files[0], files[1], rng)
                keys = name, files_of[0]
                drawn.update(keys)
                if accepted(changed, files_of):
                    wrong.update(keys)
                    yield f"{name} {case}: {difference(files, files_of)}"
                if options.viprchk and files_of[0] not in OTHER_PROGRAM:
                    asked.update(keys)
                    ended = subprocess.run([options.viprchk, changed / PROOF], capture_output=True, check=False)
                    if ended.returncode == 0:
                        believed.update(keys)
                        yield f"{name} {case}: viprchk: {difference(files, files_of)}"
            yield counts(name)
    for kind in CHANGES:
        yield counts(kind)


def difference(files: list[list[str]], changed: Mutant) -> str:
    """The lines that a change made."""
    kind, *new = changed
    return f"{kind}: " + "; ".join(f"{b} <- {a}" for pair in zip(files, new) for a, b in zip(*pair) if a != b)


if __name__ == "__main__":
    for line in main():
        print(line, flush=True)
    sys.exit(0)
