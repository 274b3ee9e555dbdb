"""Sources of the work of a run: a generator, a file, public data through an importer, or a program of its own.

Each has a ``label``, its short name, unique within an entry of a suite, and ``facts``, what decides it as a JSON
object. An instance has a ``kind``, and ``load`` gives the problem, any number of times the same, or raises InputError
or UsageError if it cannot be had.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from mast_opt.planner.importers import importer_named
from mast_opt.planner.io import from_tables_with_warnings, labelled_tables, read
from mast_opt.planner.io.header import to_fields
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.registry import generate, kind_of


@dataclass(frozen=True)
class Generated:
    """One of a family of generated instances."""

    kind: str
    family: str
    sizes: Mapping[str, int]
    seed: int
    objective: Mapping[str, Any] = field(default_factory=dict)
    """Objective in the place of the family's, as in ``[objective]`` of ``instance.toml``."""
    rules: Mapping[str, Any] = field(default_factory=dict)
    """Rules in the place of the family's, as in ``[rules]`` of ``instance.toml``."""

    @property
    def label(self) -> str:
        """Short name of a generated instance: family, sizes, seed and policy."""
        policy = "".join(f"-{self.objective[name]}" for name in ("policy", "inside") if name in self.objective)
        rules = "".join(f"-{value}" for value in self.rules.values())
        return f"{self.family}-{'x'.join(str(size) for size in self.sizes.values())}-s{self.seed}{policy}{rules}"

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that decide a generated instance, as a JSON object."""
        header = {name: dict(stated) for name in ("objective", "rules") if (stated := getattr(self, name))}
        return {"kind": self.kind, "family": self.family, "sizes": dict(self.sizes), "seed": self.seed, **header}

    def load(self) -> Problem[Any]:
        """The problem of a benchmark, generated again at each call.

        Raises:
            UsageError: the generator refuses the sizes.
            InstanceError: objective or rules are none of the kind's.
        """
        problem: Problem[Any] = generate(self.kind, self.family, seed=self.seed, **self.sizes)
        if not self.objective and not self.rules:
            return problem
        header, _ = kind_of(problem).tables.problem_to_tables(problem)
        stated = to_fields(header)
        objective, rules = self.objective or stated.get("objective"), {**stated.get("rules", {}), **self.rules}
        fields = {
            "name": problem.name, "objective": objective, "rules": rules, "provenance": problem.provenance,
        }  # fmt: skip
        changed: Problem[Any] = from_tables_with_warnings(self.kind, labelled_tables(problem), fields)[0]
        return changed


READ = (".toml", ".csv", ".parquet")
"""Endings of the files of an instance in a folder; others, such as a README, say nothing to a solver."""


@dataclass(frozen=True)
class Stored:
    """An instance in files."""

    kind: str
    path: Path

    @property
    def label(self) -> str:
        """Short name of a stored instance: the folder's or file's, without a suffix."""
        return self.path.stem if self.path.is_file() else self.path.name

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that decide a stored instance, as a JSON object with a digest of the files that are read."""
        read = (file for file in self.path.iterdir() if file.suffix in READ) if self.path.is_dir() else [self.path]
        files = sorted(file for file in read if file.is_file())
        return {"kind": self.kind, "instance": self.label, "content": digest(files)}

    def load(self) -> Problem[Any]:
        """The problem of a benchmark, read from its files. Raises InputError if they are at fault."""
        problem: Problem[Any] = read(self.path)
        return problem


@dataclass(frozen=True)
class Imported:
    """Public data, imported."""

    importer: str
    paths: tuple[Path, ...]
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The kind of problem that the benchmark's importer makes."""
        return importer_named(self.importer).kind

    @property
    def label(self) -> str:
        """Short name of an imported instance: the first file's, without suffixes."""
        return self.paths[0].name.removesuffix(".gz").removesuffix(".txt")

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that decide an imported instance, as a JSON object with a digest of the files."""
        files = {"files": [path.name for path in self.paths], "content": digest(self.paths)}
        return {"kind": self.kind, "importer": self.importer, **files, "settings": dict(self.settings)}

    def load(self) -> Problem[Any]:
        """The problem of a benchmark, imported at seed 0. Raises InputError if the files are at fault."""
        problem: Problem[Any] = importer_named(self.importer).run(self.paths, self.settings, seed=0)
        return problem


@dataclass(frozen=True)
class Program:
    """A script that makes and measures its own work, and prints one JSON object of figures in the end.

    It is called as ``python PATH --method CONTESTANT --seed N --NAME VALUE … FILE``.
    """

    path: Path
    arguments: Mapping[str, Any]
    data: Path | None = None
    """A file of public data that it works on."""

    @property
    def label(self) -> str:
        """Short name of a benchmarked program: that of the data or else of the script, and the values of
        its arguments.
        """
        name = self.path.stem if self.data is None else self.data.name.partition(".")[0]
        return "-".join([name, *(str(value) for value in self.arguments.values())])

    @property
    def facts(self) -> dict[str, Any]:
        """Facts that decide the work of a benchmarked program, as a JSON object with a digest of the script and its
        data.
        """
        stated: dict[str, Any] = {"program": self.path.name, "arguments": dict(self.arguments)}
        if self.data is None:
            return stated | {"content": digest([self.path])}
        return stated | {"data": self.data.name, "content": digest([self.path, self.data])}

    def words(self, method: str, seed: int) -> list[str]:
        """The command line of a benchmarked program after the interpreter."""
        given = [word for name, value in self.arguments.items() for word in (f"--{name}", str(value))]
        return [str(self.path), "--method", method, "--seed", str(seed), *given, *map(str, filter(None, [self.data]))]


Instance: TypeAlias = Generated | Stored | Imported
Source: TypeAlias = Instance | Program


def digest(files: Iterable[Path]) -> str:
    """A short fingerprint of the content of a benchmark's files."""
    total = hashlib.sha256()
    for file in files:
        total.update(file.name.encode())
        total.update(file.read_bytes())
    return total.hexdigest()[:16]
