"""Suites in TOML. Everything wrong with a file is listed at once, but values of a wrong shape by themselves.

title, about                            what the suite is for
solvers, time_limits_s, seeds, threads, gap, plots      of every entry that does not say otherwise
[contestants.NAME]                      a solver: solver, formulation, options, params, iterations; or peer
    threads, seeds                              of either
[[entry]] name                          and where its instances come from:
    kind, family, sizes, instance_seeds         a generator
        objective, rules                            in the place of the family's, as in instance.toml
    instances                                   files, in the suite's folder or in one above it
    importer, data, settings                    public data: patterns under the folder given as --data
    program, arguments                          a script, found like files, that prints one JSON object of figures
    program, arguments, data                    the same for each file of public data that a pattern fits
[reference] file, column, best, bound   a CSV file next to the suite with values that others have published
[[known_issue]] words, contestant, entry
"""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mast_opt.core.errors import MastOptError, SuiteError, UsageError
from mast_opt.core.limits import MOST_DOCUMENT_BYTES, MOST_HEADER_BYTES, read_regular
from mast_opt.core.wording import did_you_mean
from mast_opt.planner.bench.suites.instances import Generated, Imported, Instance, Program, Source, Stored
from mast_opt.planner.bench.suites.suite import Contestant, KnownIssue, Suite, Trial
from mast_opt.planner.bench.suites.toml_schema import check_shapes
from mast_opt.planner.io import kind_of_file
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.header import FORMAT, from_fields
from mast_opt.planner.io.readers.folder import parse_toml
from mast_opt.planner.solving import solver_names
from mast_opt.planner.solving.solver_params import solver_params
from mast_opt.problems.registry import kind_named

FOLDER = Path(__file__).parents[1] / "suite_files"
"""Suites of mast-opt. What they name and only the repository has is left out where it is not there."""
_SETTINGS = {"solvers": [], "time_limits_s": [60.0], "seeds": [0], "threads": 1, "gap": 1e-4}
_SOLVER_ONLY = {"solver", "formulation", "options", "iterations", "params"}


def suite_path(name: str) -> Path:
    """The file of a suite: a path that ends in .toml, the name of one of mast-opt's, or of one in the current folder.

    Raises:
        UsageError: there is no such file; lists the names that there are.
    """
    paths = [Path(name)] if name.endswith(".toml") else [FOLDER / f"{name}.toml", Path(f"{name}.toml")]
    for path in paths:
        if _is_file(path):
            return path
    known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.toml")))
    raise UsageError(f"there is no suite {name!r} ({paths[-1]}); expected the path of a .toml file, or one of: {known}")


def _is_file(path: Path) -> bool:
    """Whether a file that a suite names is there."""
    return _is_there(path) and path.is_file()


def _is_there(path: Path) -> bool:
    """False for a path that no system can have, too: one that is too long, or with a null character."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def read_suite(path: Path, data: Path | None = None) -> Suite:
    """The benchmark suite in a file.

    Args:
        path: the TOML file.
        data: the folder of public data for the entries that import; None leaves these entries out.

    Raises:
        SuiteError: lists everything that is wrong with the file.
    """
    faults = Faults()
    try:
        stated = parse_toml(read_regular(path, MOST_HEADER_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        faults.add(path.name, f"a TOML file that can be read ({error})")
        raise SuiteError(faults.found) from error
    wrong = Faults()
    check_shapes(path.name, stated, faults, wrong)
    if wrong:
        raise SuiteError(wrong.found)
    suite = _Reader(path, stated, data, faults).suite()
    if faults:
        raise SuiteError(faults.found)
    return suite


class _Reader:
    def __init__(self, path: Path, stated: Mapping[str, Any], data: Path | None, faults: Faults) -> None:
        self._path = path
        self._folder = path.parent
        self._stated = stated
        self._data = data
        self._faults = faults
        self._skipped: list[str] = []
        self._absent: dict[str, None] = {}
        """Names of entries and contestants that need what this installation lacks."""

    def suite(self) -> Suite:
        """Suite that the TOML file states."""
        contestants = {name: self._contestant(name, given) for name, given in self._table("contestants").items()}
        references = self._references()
        trials: list[Trial] = []
        for position, entry in enumerate(self._stated.get("entry", [])):
            place = f"entry {entry.get('name', position + 1)!r}"
            try:
                sources = list(self._sources(place, entry))
            except (MastOptError, OSError, ValueError) as error:
                self._faults.add(f"{self._path.name}, {place}", f"instances that can be had ({error})")
                continue
            if not sources and not self._faults and entry.get("name") not in self._absent:
                self._skipped.append(str(entry.get("name")))
            for source in sources:
                trials += self._trials(place, entry, source, contestants, references)
        if not trials and not self._skipped and not self._absent and not self._faults:
            self._faults.add(self._path.name, "at least one [[entry]] with instances and solvers")
        issues = list(self._issues())
        return Suite(
            name=self._path.stem,
            path=self._path,
            title=self._stated.get("title", self._path.stem),
            about=self._stated.get("about", ""),
            trials=tuple(trials),
            known_issues=tuple(issues),
            plots=tuple(self._stated.get("plots", ())),
            skipped=tuple(self._skipped),
            absent=tuple(self._absent),
        )

    def _trials(
        self,
        place: str,
        entry: Mapping[str, Any],
        source: Source,
        contestants: Mapping[str, Contestant],
        references: Mapping[str, Mapping[str, float]],
    ) -> Iterator[Trial]:
        """Trials of an entry of the suite on one source: contestants × limits × seeds."""
        settings = {name: entry.get(name, self._stated.get(name, default)) for name, default in _SETTINGS.items()}
        if not settings["solvers"]:
            self._faults.add(f"{self._path.name}, {place}: solvers", "at least one solver, here or for the whole suite")
        for name in (name for name in settings["solvers"] if name not in self._absent):
            chosen = contestants.get(name, Contestant(name, None if isinstance(source, Program) else name))
            if not isinstance(source, Program) and not self._takes(place, source, chosen):
                continue
            for limit in settings["time_limits_s"]:
                for seed in settings["seeds"] if chosen.seeds is None else chosen.seeds:
                    yield Trial(
                        suite=self._path.stem,
                        entry=entry["name"],
                        source=source,
                        contestant=chosen,
                        time_limit_s=float(limit),
                        gap=float(settings["gap"]),
                        seed=int(seed),
                        threads=chosen.threads or int(settings["threads"]),
                        reference=references.get(source.label, {}),
                    )

    def _takes(self, place: str, source: Instance, chosen: Contestant) -> bool:
        """Whether the kind of the instance has this solver and formulation; a fault if not. A peer looks itself."""
        if chosen.solver is None:
            return True
        kind = kind_named(source.kind)
        for what, name, known in (
            ("solver", chosen.solver, solver_names(kind)),
            ("formulation", chosen.formulation, tuple(kind.formulation.formulations)),
        ):
            if name not in known:
                hint = did_you_mean(name, known) or f"; there are: {', '.join(known)}"
                self._faults.add(f"{self._path.name}, {place}", f"a {what} of {kind.name}{hint}", value=name)
                return False
        ours, stated = chosen.solver in kind.solvers.heuristics, chosen.formulation
        for what, given, wrong, why in (
            ("iterations", chosen.iterations, not ours, "has its own limits among its options"),
            ("iterations", chosen.iterations, kind.solvers.is_constructive(chosen.solver), "builds one plan and ends"),
            ("formulation", None if stated == "base" else stated, ours, "uses none"),
            ("options", dict(chosen.options) or None, ours, "has no options"),
        ):
            if given is not None and wrong:
                where = f"{self._path.name}, contestants.{chosen.name}: {what}"
                self._faults.add(where, f"none, since {chosen.solver} {why}", value=given)
                return False
        try:
            solver_params(kind, chosen.solver, chosen.params)
        except UsageError as error:
            where = f"{self._path.name}, contestants.{chosen.name}: params"
            self._faults.add(where, f"parameters that {chosen.solver} takes ({error})")
            return False
        return True

    def _sources(self, place: str, entry: Mapping[str, Any]) -> Iterator[Source]:
        """Sources of an entry of the suite: generated, stored or imported instances, or programs."""
        if "name" not in entry:
            self._faults.add(f"{self._path.name}, {place}", "a name")
        elif "kind" in entry:
            yield from self._generated(place, entry)
        elif "instances" in entry:
            for path in (self._found(name, entry["name"]) for name in entry["instances"]):
                if path is not None:
                    yield Stored(kind_of_file(path), path)
        elif "importer" in entry:
            yield from self._imported(place, entry)
        elif "program" in entry:
            yield from self._programs(place, entry)
        else:
            self._faults.add(f"{self._path.name}, {place}", "one of: kind, instances, importer, program")

    def _found(self, name: str, by: str) -> Path | None:
        """A file that ``by`` names: in the suite's folder or the nearest one above it that has it.

        None where a suite of mast-opt's own names what is not installed; otherwise the path in the suite's folder.
        """
        for folder in (self._folder, *self._folder.absolute().parents):
            if _is_there(folder / name):
                return folder / name
        if self._folder == FOLDER:
            self._absent[by] = None
            return None
        return self._folder / name

    def _generated(self, place: str, entry: Mapping[str, Any]) -> Iterator[Source]:
        """Generated instances of an entry of the suite. Raises UsageError for an unknown family or size."""
        kind = kind_named(entry["kind"])
        family = entry.get("family", next(iter(kind.generate.families)))
        if family not in kind.generate.families:
            known = ", ".join(kind.generate.families)
            raise UsageError(f"{kind.name} has no family called {family!r}; expected one of: {known}")
        sizes = kind.generate.families[family].sizes
        for name in entry.get("sizes", {}):
            if name not in sizes:
                raise UsageError(f"{family} has no size called {name!r}; expected some of: {', '.join(sizes)}")
        header = {name: dict(entry.get(name, {})) for name in ("objective", "rules")}
        unstated = {"policy": next(iter(kind.policies))} if kind.policies else {}
        fields = {"format": FORMAT, "kind": kind.name, "name": family, **header}
        from_fields(
            fields | {"objective": header["objective"] or unstated}, kind, f"{self._path.name}, {place}", self._faults
        )
        for seed in entry.get("instance_seeds", [0]):
            yield Generated(kind.name, family, dict(entry.get("sizes", {})), seed, **header)

    def _programs(self, place: str, entry: Mapping[str, Any]) -> Iterator[Program]:
        """Programs of an entry of the suite, one for each file of its data."""
        script, arguments = self._found(entry["program"], entry["name"]), dict(entry.get("arguments", {}))
        if script is None:
            return
        if "data" not in entry:
            yield Program(script, arguments)
        elif self._data is not None:
            for pattern in entry["data"]:
                if isinstance(pattern, list):
                    self._faults.add(f"{self._path.name}, {place}: data", "one pattern a file", value=pattern)
                else:
                    yield from (Program(script, arguments, path) for path in self._matches(place, pattern))

    def _matches(self, place: str, pattern: str) -> list[Path]:
        """Files of public data for a suite; a fault if there are none."""
        found = [] if self._data is None else sorted(self._data.glob(pattern))
        if not found:
            self._faults.add(f"{self._path.name}, {place}: data", f"files in {self._data}", value=pattern)
        return found

    def _imported(self, place: str, entry: Mapping[str, Any]) -> Iterator[Source]:
        """Imported instances of an entry of the suite; none without a folder of public data."""
        if self._data is None:
            return
        settings = {name: str(value) for name, value in entry.get("settings", {}).items()}
        for pattern in entry.get("data", []):
            if isinstance(pattern, list):
                yield Imported(entry["importer"], tuple(self._data / name for name in pattern), settings)
                continue
            for path in self._matches(place, pattern):
                yield Imported(entry["importer"], (path,), settings)

    def _contestant(self, name: str, given: Mapping[str, Any]) -> Contestant:
        """Contestant that a suite states; faults for a peer that is not there, or is given a solver's settings."""
        peer = self._found(given["peer"], name) if "peer" in given else None
        if peer is not None and not _is_file(peer):
            self._faults.add(f"{self._path.name}, contestants.{name}: peer", "a script that is there", value=peer)
        ignored = [] if "peer" not in given else sorted(given.keys() & _SOLVER_ONLY)
        for setting in ignored:
            where = f"{self._path.name}, contestants.{name}: {setting}"
            self._faults.add(where, "none, since a peer is given nothing but limits", value=given[setting])
        return Contestant(
            name=name,
            solver=None if "peer" in given else given.get("solver", name),
            formulation=given.get("formulation", "base"),
            options=tuple(given.get("options", {}).items()),
            iterations=given.get("iterations"),
            params=given.get("params", {}),
            threads=given.get("threads"),
            seeds=None if given.get("seeds") is None else tuple(given["seeds"]),
            peer=peer,
        )

    def _references(self) -> dict[str, dict[str, float]]:
        """Label of an imported instance → published ``best`` and ``bound``."""
        stated = self._table("reference")
        if not stated:
            return {}
        place = f"{self._path.name}, reference"
        if not {"file", "column"} <= stated.keys():
            self._faults.add(place, "a file and the column of its labels")
            return {}
        try:
            text = read_regular(self._folder / stated["file"], MOST_DOCUMENT_BYTES).decode("utf-8")
            reader = csv.DictReader(io.StringIO(text, newline=""))
            rows, heads = list(reader), reader.fieldnames or []
        except (OSError, ValueError, csv.Error) as error:
            self._faults.add(f"{place}: file", f"a CSV file that can be read ({error})", value=stated["file"])
            return {}
        columns = {what: stated[what] for what in ("column", "best", "bound") if what in stated}
        missing = {what: name for what, name in columns.items() if name not in heads}
        for what, name in missing.items():
            self._faults.add(f"{place}: {what}", f"a column of {stated['file']}: {', '.join(heads)}", value=name)
        if missing:
            return {}
        labels = columns.pop("column")
        found: dict[str, dict[str, float]] = {}
        for row in rows:
            values = found.setdefault(row[labels], {})
            for name, column in columns.items():
                text = row[column] or ""
                try:
                    values |= {name: float(text)} if text else {}
                except ValueError:
                    self._faults.add(f"{stated['file']}, {row[labels]}: {column}", "a number or nothing", value=text)
        return found

    def _issues(self) -> Iterator[KnownIssue]:
        """Known issues that a suite states."""
        for position, issue in enumerate(self._stated.get("known_issue", []), 1):
            place = f"known_issue {position}"
            if "words" not in issue:
                self._faults.add(f"{self._path.name}, {place}", "words")
            yield KnownIssue(issue.get("words", ""), issue.get("contestant"), issue.get("entry"))

    def _table(self, name: str) -> Mapping[str, Any]:
        """Table of the suite's file, empty where it is not stated."""
        table: Mapping[str, Any] = self._stated.get(name, {})
        return table
