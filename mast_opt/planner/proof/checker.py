"""Checker of proofs: it reads ``proof.mps`` and ``proof.vipr`` and believes neither the solver nor the writer.

    python checker.py FOLDER

It needs Python alone, imports nothing else of this package, and computes with fractions. A proof is accepted if
(1) it states the program of the .mps file: columns, integers, objective, and every row and bound, no more and no fewer;
(2) its solution keeps all of them, and its objective is the upper end of the range;
(3) each of its steps follows from earlier ones by a rule of the format, and one that assumes nothing states the lower
end of the range.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from pathlib import Path

Vector = dict[int, Fraction]
Limit = tuple[str, Fraction, tuple[tuple[int, Fraction], ...]]
"""G or L, the right-hand side, and the entries by column."""


class Refused(Exception):
    """A fault of a proof."""


@dataclass
class Program:
    """Minimise objective · x within limits, integers whole."""

    columns: list[str]
    integers: set[int]
    objective: Vector
    limits: set[Limit]


@dataclass
class Step:
    """A constraint of a proof, and the positions of the assumptions that it rests on."""

    sense: str
    rhs: Fraction
    entries: Vector
    assumed: frozenset[int] = frozenset()

    def absurd(self) -> bool:
        """Whether nothing fulfils it."""
        if self.entries:
            return False
        return {"G": self.rhs > 0, "L": self.rhs < 0, "E": self.rhs != 0}[self.sense]

    def implies(self, other: "Step") -> bool:
        """Whether it is at least as strong as another one."""
        if self.absurd():
            return True
        if self.entries != other.entries or self.sense not in (other.sense, "E"):
            return False
        return {"G": self.rhs >= other.rhs, "L": self.rhs <= other.rhs, "E": self.rhs == other.rhs}[other.sense]


@dataclass
class Accepted:
    """The statement of an accepted proof about its program."""

    bound: Fraction | None
    objective: Fraction | None


def check_folder(folder: Path) -> Accepted:
    """Check a proof. Raises Refused."""
    try:
        program = read_mps((folder / "proof.mps").read_text(encoding="utf-8"))
        return check(program, iter((folder / "proof.vipr").read_text(encoding="utf-8").split()))
    except (ValueError, KeyError, IndexError, ZeroDivisionError, StopIteration, OSError) as error:
        raise Refused(f"the files cannot be read: {type(error).__name__} {error}") from error


def _limits(sense: str, rhs: Fraction, entries: Vector) -> set[Limit]:
    """A constraint as one or two limits."""
    key = tuple(sorted((at, number) for at, number in entries.items() if number))
    return {(side, rhs, key) for side in ("GL" if sense == "E" else sense)}


class _Mps:
    """A reader of free MPS format. Raises Refused for what it does not know."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.entries: dict[str, Vector] = {}
        self.place: dict[str, int] = {}
        self.numbers: dict[str, dict[str, Fraction]] = {"RHS": {}, "RANGES": {}}
        self.bounds: list[list[Fraction | None]] = []
        self.integers: set[int] = set()
        self.objective = ""
        self.marked = False

    def line(self, section: str, words: list[str]) -> None:
        """Take a line of a section into account."""
        if section == "ROWS":
            sense, name = words
            if name in self.rows:
                raise Refused(f"two rows are called {name}")
            self.rows[name], self.entries[name] = sense, {}
            self.objective = self.objective or (name if sense == "N" else "")
        elif section == "COLUMNS":
            self._column(words)
        elif section in self.numbers:
            table = self.numbers[section]
            if words[1] in table or words[1] == self.objective:
                raise Refused(f"{section} of {words[1]} is stated twice, or is that of the objective")
            table[words[1]] = Fraction(words[2])
        elif section == "BOUNDS":
            _bound(self.bounds[self.place[words[2]]], words)
        else:
            raise Refused(f"the .mps file has a section {section}")

    def _column(self, words: list[str]) -> None:
        """An entry of a column, or the beginning or end of integer ones."""
        if words[1] == "'MARKER'":
            self.marked = words[2] == "'INTORG'"
            return
        at = self.place.setdefault(words[0], len(self.place))
        if at == len(self.bounds):
            self.bounds.append([Fraction(0), None])
            if self.marked:
                self.integers.add(at)
        _put(self.entries[words[1]], at, words[2])

    def program(self) -> Program:
        """The program of all lines."""
        limits: set[Limit] = set()
        for at, pair in enumerate(self.bounds):
            for sense, value in zip("GL", pair, strict=True):
                if value is not None:
                    limits |= _limits(sense, value, {at: Fraction(1)})
        for name, sense in self.rows.items():
            if sense != "N":
                rhs, span = self.numbers["RHS"].get(name, Fraction(0)), self.numbers["RANGES"].get(name)
                limits |= _row(sense, rhs, span, self.entries[name])
        return Program(list(self.place), self.integers, self.entries[self.objective], limits)


def read_mps(text: str) -> Program:
    """The program of a file in free MPS format, which minimises. Raises Refused for what this checker does not know."""
    found, section = _Mps(), ""
    for line in text.splitlines():
        words = line.split()
        if not words or line.startswith("*"):
            continue
        if line[0].isspace():
            found.line(section, words)
        else:
            section = words[0]
            if section not in ("NAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA"):
                raise Refused(f"the .mps file has a section {section}")
    return found.program()


def _put(vector: Vector, at: int, number: str) -> None:
    """Set an entry. Raises Refused where it is there already."""
    if at in vector:
        raise Refused(f"an entry of column {at} is stated twice")
    if value := Fraction(number):
        vector[at] = value


def _bound(pair: list[Fraction | None], words: list[str]) -> None:
    """Take one line of BOUNDS into account. Raises Refused for a kind that is not known."""
    kind = words[0]
    value = Fraction(words[3]) if kind in ("LO", "UP", "FX") else None
    if kind in ("LO", "FX", "MI", "FR"):
        pair[0] = value
    if kind in ("UP", "FX", "PL", "FR"):
        pair[1] = value
    if kind not in ("LO", "UP", "FX", "MI", "PL", "FR"):
        raise Refused(f"a bound of the kind {kind}")


def _row(sense: str, rhs: Fraction, span: Fraction | None, entries: Vector) -> set[Limit]:
    """Limits of a row. Raises Refused for a range of an equation."""
    found = _limits(sense, rhs, entries)
    if span is not None:
        if sense == "E":
            raise Refused("an equation has a range")
        found |= _limits("G", rhs - abs(span), entries) if sense == "L" else _limits("L", rhs + abs(span), entries)
    return found


def check(program: Program, words: Iterator[str]) -> Accepted:
    """Check a proof, word by word, of a program. Raises Refused."""
    _expect(words, "VER")
    if next(words) not in ("1.0", "1.1"):
        raise Refused("another version of the format")
    _expect(words, "VAR")
    if [next(words) for _ in range(int(next(words)))] != program.columns:
        raise Refused("the columns are not those of the .mps file")
    _expect(words, "INT")
    if {int(next(words)) for _ in range(int(next(words)))} != program.integers:
        raise Refused("the integer columns are not those of the .mps file")
    _expect(words, "OBJ")
    _expect(words, "min")
    if _vector(words) != program.objective:
        raise Refused("the objective is not that of the .mps file")
    _expect(words, "CON")
    number, _ = int(next(words)), next(words)
    steps = [_constraint(words, program.objective) for _ in range(number)]
    stated = set().union(*(_limits(step.sense, step.rhs, step.entries) for step in steps))
    if stated != program.limits:
        raise Refused(f"{len(stated ^ program.limits)} rows or bounds are not those of the .mps file")
    _expect(words, "RTP")
    _expect(words, "range")
    low, high = (_end(next(words)) for _ in range(2))
    reached = _solutions(program, steps, words)
    if high is not None and (reached is None or reached > high):
        raise Refused("no solution reaches the upper end of the range")
    _expect(words, "DER")
    proven = low is None
    for _ in range(int(next(words))):
        step = _constraint(words, program.objective)
        _derive(program, steps, step, words)
        next(words)
        steps.append(step)
        goal = None if low is None else Step("G", low, program.objective)
        proven = proven or (not step.assumed and goal is not None and step.implies(goal))
    if not proven:
        raise Refused("no step proves the lower end of the range")
    if next(words, None) is not None:
        raise Refused("words follow the last step")
    return Accepted(low, reached)


def _expect(words: Iterator[str], word: str) -> None:
    """Raises Refused where another word comes."""
    found = next(words)
    if found != word:
        raise Refused(f"{word} was expected, not {found}")


def _vector(words: Iterator[str]) -> Vector:
    """Entries, with their number in front."""
    vector: Vector = {}
    for _ in range(int(next(words))):
        _put(vector, int(next(words)), next(words))
    return vector


def _constraint(words: Iterator[str], objective: Vector) -> Step:
    """A constraint: name, sense, right-hand side and entries, or OBJ for those of the objective."""
    next(words)
    sense, rhs, first = next(words), Fraction(next(words)), next(words)
    if sense not in ("G", "L", "E"):
        raise Refused(f"a constraint has the sense {sense}")
    if first == "OBJ":
        return Step(sense, rhs, objective)
    entries: Vector = {}
    for _ in range(int(first)):
        _put(entries, int(next(words)), next(words))
    return Step(sense, rhs, entries)


def _end(word: str) -> Fraction | None:
    """An end of the range; None where it is infinite."""
    return None if word in ("-inf", "inf") else Fraction(word)


def _solutions(program: Program, steps: list[Step], words: Iterator[str]) -> Fraction | None:
    """The least objective of the solutions. Raises Refused where one breaks a limit."""
    _expect(words, "SOL")
    best: Fraction | None = None
    for _ in range(int(next(words))):
        name, x = next(words), _vector(words)
        if any(x[at].denominator != 1 for at in x.keys() & program.integers):
            raise Refused(f"an integer column of {name} is no integer")
        if not all(0 <= at < len(program.columns) for at in x):
            raise Refused(f"{name} has a column that does not exist")
        for position, step in enumerate(steps):
            value = _product(step.entries, x)
            if not {"G": value >= step.rhs, "L": value <= step.rhs, "E": value == step.rhs}[step.sense]:
                raise Refused(f"{name} breaks constraint {position}")
        value = _product(program.objective, x)
        best = value if best is None else min(best, value)
    return best


def _product(one: Vector, other: Vector) -> Fraction:
    """The inner product."""
    return sum((number * other[at] for at, number in one.items() if at in other), Fraction(0))


def _derive(program: Program, steps: list[Step], step: Step, words: Iterator[str]) -> None:
    """Check the reason of a step, and note what it assumes. Raises Refused."""
    _expect(words, "{")
    rule = next(words)
    if rule == "asm":
        step.assumed = frozenset([len(steps)])
        known = True
    elif rule in ("lin", "rnd"):
        found = _combined(program, steps, _vector(words), rounded=rule == "rnd")
        step.assumed, known = found.assumed, found.implies(step)
    elif rule == "uns":
        one, first, other, second = (int(next(words)) for _ in range(4))
        if min(one, first, other, second) < 0:
            raise Refused("a step refers to what does not exist")
        step.assumed = (steps[one].assumed - {first}) | (steps[other].assumed - {second})
        known = steps[one].implies(step) and steps[other].implies(step)
        known = known and _covers(program, steps[first], steps[second])
    else:
        raise Refused(f"a rule called {rule}")
    _expect(words, "}")
    if not known:
        raise Refused(f"step {len(steps)} does not follow by {rule}")


def _combined(program: Program, steps: list[Step], factors: Vector, *, rounded: bool) -> Step:
    """The linear combination of earlier steps, its right-hand side rounded where asked. Raises Refused."""
    entries: Vector = {}
    rhs, assumed, signs = Fraction(0), frozenset[int](), set()
    for at, factor in factors.items():
        if not 0 <= at < len(steps):
            raise Refused("a step refers to what does not exist")
        used = steps[at]
        if used.sense != "E":
            signs.add((used.sense == "G") == (factor > 0))
        rhs += factor * used.rhs
        assumed |= used.assumed
        for column, number in used.entries.items():
            entries[column] = entries.get(column, Fraction(0)) + factor * number
    if len(signs) > 1:
        raise Refused("a combination mixes directions")
    entries = {column: number for column, number in entries.items() if number}
    sense = "E" if not signs else "G" if signs == {True} else "L"
    if rounded:
        whole = all(column in program.integers and number.denominator == 1 for column, number in entries.items())
        if not whole or sense == "E":
            raise Refused("what is rounded is not whole")
        rhs = Fraction(ceil(rhs) if sense == "G" else floor(rhs))
    return Step(sense, rhs, entries, assumed)


def _covers(program: Program, one: Step, other: Step) -> bool:
    """Whether one of two constraints holds for all integers."""
    if {one.sense, other.sense} != {"G", "L"} or one.entries != other.entries:
        return False
    below, above = (one, other) if one.sense == "L" else (other, one)
    whole = all(at in program.integers and number.denominator == 1 for at, number in one.entries.items())
    return whole and below.rhs.denominator == 1 and above.rhs == below.rhs + 1


def main() -> int:
    """Check the proof in the folder that the command line names; 0 if it is accepted."""
    try:
        found = check_folder(Path(sys.argv[1]))
    except Refused as error:
        print(f"refused: {error}")
        return 1
    print(f"accepted: {found.bound} <= minimum <= {found.objective}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
