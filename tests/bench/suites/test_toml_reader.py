"""What a suite file means, and how its faults are named."""

from __future__ import annotations

import os
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

import mast_opt
from mast_opt.core.errors import SuiteError, UsageError
from mast_opt.planner.bench.results.store import used_by
from mast_opt.planner.bench.suites.instances import Generated, Imported, Program, Stored
from mast_opt.planner.bench.suites.suite import Suite
from mast_opt.planner.bench.suites.toml_reader import FOLDER, read_suite, suite_path
from mast_opt.problems.job_placement import JobPlacement
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.registry import kind_names
from tests.bench.conftest import SUITE
from tests.platforms import needs

SUITES = sorted(FOLDER.glob("*.toml"))


def test_trials_are_instances_times_solvers(suite: Suite) -> None:
    assert [trial.label for trial in suite.trials] == [
        "tiny/tiny/highs/2s/seed0",
        "tiny/tiny/highs strong/2s/seed0",
        "drawn/study-1x1x2x80-s3/highs/2s/seed0",
        "drawn/study-1x1x2x80-s4/highs/2s/seed0",
    ]
    strong = suite.trials[1].contestant
    assert (strong.solver, strong.formulation, strong.options) == ("highs", "strong", (("mip_heuristic_effort", 0.1),))
    assert suite.known_issues[0].contestant == "highs"


def test_a_contestant_may_have_threads_of_its_own(suite_file: Path) -> None:
    suite_file.write_text(SUITE.replace('formulation = "strong"', 'formulation = "strong"\nthreads = 3'))
    assert [trial.threads for trial in read_suite(suite_file).trials] == [1, 3, 1, 1]


def test_a_contestant_may_have_seeds_of_its_own(suite_file: Path) -> None:
    suite_file.write_text(SUITE.replace('formulation = "strong"', 'formulation = "strong"\nseeds = [4, 5]'))
    assert [trial.seed for trial in read_suite(suite_file).trials] == [0, 4, 5, 0, 0]


FLEETS = """
title = "Fleets"
solvers = ["ras", "ras fast"]

[contestants."ras fast"]
solver = "ras"
params = { price_steps = 20, sub_mip = { solver = "scip" } }

[[entry]]
name = "drawn"
kind = "server-assignment"
sizes = { servers = 20, reservations = 2 }
"""


def test_a_contestant_may_have_parameters(tmp_path: Path) -> None:
    file = tmp_path / "fleets.toml"
    file.write_text(FLEETS)
    usual, fast = read_suite(file).trials
    assert fast.facts["contestant"]["params"] == {"price_steps": 20, "sub_mip": {"solver": "scip"}}
    assert "params" not in usual.facts["contestant"]
    assert "scip" in used_by(fast)
    assert "scip" not in used_by(usual)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "price_steps",
            "price_stps",
            "expected parameters that ras takes (RasParams has no parameter 'price_stps'",
        ),
        ("= 20, sub", "= 0, sub", "parameter price_steps of RasParams is 0; expected a whole number of at least 1"),
        ('solver = "ras"\n', 'solver = "highs"\n', "highs is a MIP backend: it takes options by its own names"),
        ("params = {", "params = 3 #", "contestants.ras fast: params: found '3'; expected a table"),
    ],
)
def test_parameters_of_a_contestant_that_do_not_fit_are_faults(tmp_path: Path, old: str, new: str, words: str) -> None:
    file = tmp_path / "fleets.toml"
    file.write_text(FLEETS.replace(old, new))
    with pytest.raises(SuiteError) as raised:
        read_suite(file)
    assert words in str(raised.value)


def test_a_generated_instance_may_have_another_objective_and_other_rules(tmp_path: Path) -> None:
    file = tmp_path / "policies.toml"
    usual = (
        '[[entry]]\nname = "e"\nkind = "resource-allocation"\nsizes = { jobs = 4, types = 2 }\nsolvers = ["highs"]\n'
    )
    file.write_text(usual + 'objective = { policy = "nash" }\nrules = { shares = "whole" }\n')
    (trial,) = read_suite(file).trials
    assert isinstance(trial.source, Generated)
    assert trial.source.label == "standard-4x2-s0-nash-whole"
    assert trial.facts["source"]["objective"] == {"policy": "nash"}
    problem = trial.source.load()
    family = mast_opt.generate("resource-allocation", jobs=4, types=2)
    assert problem == replace(family, objective=Objective({}, policy="nash"), whole=True)
    file.write_text(usual)
    (plain,) = read_suite(file).trials
    assert isinstance(plain.source, Generated)
    assert plain.source.facts.keys() == {"kind", "family", "sizes", "seed"}
    assert plain.source.load() == family
    file.write_text(usual + 'objective = { policy = "nsh" }\nrules = { share = "whole" }\n')
    with pytest.raises(SuiteError) as raised:
        read_suite(file)
    assert "policies.toml, entry 'e': objective.policy: found 'nsh'" in str(raised.value)
    assert "policies.toml, entry 'e': rules.share: found 'share'" in str(raised.value)


def test_public_data_come_from_a_folder_of_the_user(suite_file: Path, tmp_path: Path) -> None:
    assert read_suite(suite_file).skipped == ("public",)
    (tmp_path / "gap").mkdir()
    (tmp_path / "gap" / "one.txt").write_text("1 1 5 2 3")
    (tmp_path / "values.csv").write_text("name,best,lower\none,5,\nother,7,6\n")
    reference = '[reference]\nfile = "values.csv"\ncolumn = "name"\nbest = "best"\nbound = "lower"\n'
    suite_file.write_text(SUITE + reference)
    trial = read_suite(suite_file, tmp_path).trials[-1]
    assert trial.label == "public/one/highs/2s/seed0"
    assert trial.reference == {"best": 5.0}
    assert isinstance(trial.source, Imported)
    problem = trial.source.load()
    assert isinstance(problem, JobPlacement)
    assert problem.jobs.labels == ("item-1",)


def test_a_program_may_work_on_public_data(suite_file: Path, tmp_path: Path) -> None:
    entry = '[[entry]]\nname = "lists"\nprogram = "two.toml"\narguments = { seeds = 2 }\ndata = ["pods_*.csv*"]\n'
    suite_file.write_text('about = "a"\nsolvers = ["ours"]\n' + entry)
    assert read_suite(suite_file).skipped == ("lists",)
    for name in ("pods_a.csv", "pods_b.csv.gz"):
        (tmp_path / name).write_text(name)
    one, two = (trial.source for trial in read_suite(suite_file, tmp_path).trials)
    assert isinstance(one, Program)
    assert (one.label, two.label) == ("pods_a-2", "pods_b-2")
    words = ["--method", "ours", "--seed", "3", "--seeds", "2", str(tmp_path / "pods_a.csv")]
    assert one.words("ours", 3)[1:] == words
    assert one.facts["data"] == "pods_a.csv"
    assert one.facts["content"] != two.facts["content"]
    suite_file.write_text(suite_file.read_text().replace('["pods_*.csv*"]', '[["pods_a.csv"]]'))
    with pytest.raises(SuiteError, match="one pattern a file"):
        read_suite(suite_file, tmp_path)


def test_a_published_value_is_a_number(suite_file: Path, tmp_path: Path) -> None:
    (tmp_path / "values.csv").write_text("name,best\none,unknown\n")
    suite_file.write_text(SUITE + '[reference]\nfile = "values.csv"\ncolumn = "name"\nbest = "best"\n')
    with pytest.raises(SuiteError, match=r"values.csv, one: best: found 'unknown'; expected a number or nothing"):
        read_suite(suite_file)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"highs"]', '"hihgs"]', "did you mean 'highs'?"),
        ('formulation = "strong"', 'formulation = "storng"', "did you mean 'strong'?"),
        ("time_limits_s", "time_limit", "did you mean 'time_limits_s'?"),
        ("family", "familiy", "did you mean 'family'?"),
        ('instances = ["tiny.json"]', "", "one of: kind, instances, importer, program"),
        ('instances = ["tiny.json"]', 'instances = ["none.json"]', "none.json"),
        ('kind = "job-placement"', 'kind = "jobs"', "'jobs'"),
        ('name = "tiny"', "", "a name"),
        ('title = "Two', 'title = Two"', "a TOML file that can be read"),
        ('formulation = "strong"', 'peer = "none.py"', "a script that is there"),
        (
            'solver = "highs"\nformulation = "strong"',
            'solver = "exhaustive"\niterations = 3',
            "builds one plan and ends",
        ),
        ("time_limits_s = [2]", "time_limits_s = 2", "two.toml: time_limits_s: found '2'; expected a list of numbers"),
        ("time_limits_s = [2]", "time_limits_s = [0]", "a list of numbers of seconds above 0"),
        ("time_limits_s = [2]", "time_limits_s = [2]\ngap = nan", "gap: found 'nan'; expected a number of at least 0"),
        ("threads = 1", "threads = 0", "threads: found '0'; expected a whole number of at least 1"),
        ('formulation = "strong"', "seeds = 3", "contestants.highs strong: seeds: found '3'; expected a list"),
        ("threads = 1", "threads = 1\nseeds = [-1]", "seeds: found '[-1]'; expected a list of whole numbers from 0"),
        (
            "threads = 1",
            'threads = 1\nplots = ["pie"]',
            "expected a list with some of: profile",
        ),
        ("instance_seeds = [3, 4]", "instance_seeds = 3", "entry 'drawn': instance_seeds: found '3'"),
        ("options = { mip_heuristic_effort = 0.1 }", "options = 3", "contestants.highs strong: options: found '3'"),
        ('formulation = "strong"', "threads = 0", "contestants.highs strong: threads: found '0'"),
        ('formulation = "strong"', "iterations = 3", "iterations: found '3'; expected none, since highs has its own"),
        (
            'solver = "highs"\nformulation = "strong"',
            'solver = "exhaustive"',
            "expected none, since exhaustive has no options",
        ),
        (
            'solver = "highs"\nformulation = "strong"\noptions = { mip_heuristic_effort = 0.1 }',
            'solver = "exhaustive"\nformulation = "strong"',
            "expected none, since exhaustive uses none",
        ),
        ('family = "study"', 'family = "studdy"', "job-placement has no family called 'studdy'"),
        ("servers = 2", "servers = 2.5", "entry 'drawn': sizes: found"),
        ("servers = 2", "serverz = 2", "study has no size called 'serverz'"),
        ("words = ", "word = ", "known_issue 1"),
        ("[[known_issue]]", '[reference]\nfile = "none.csv"\ncolumn = "a"\n[[known_issue]]', "none.csv"),
        ("[[known_issue]]", '[reference]\nfile = "two.toml"\n[[known_issue]]', "a file and the column of its labels"),
        (
            "[[known_issue]]",
            '[reference]\nfile = "two.toml"\ncolumn = "a"\n[[known_issue]]',
            "reference: column: found 'a'; expected a column of two.toml",
        ),
        (
            "[[known_issue]]",
            '[contestants.other]\npeer = "two.toml"\niterations = 3\n[[known_issue]]',
            "contestants.other: iterations: found '3'; expected none, since a peer is given nothing but limits",
        ),
        ("threads = 1", "threads = 1\ngap = 1" + 400 * "0", "expected a number of at least 0"),
    ],
)
def test_faults_are_named(suite_file: Path, before: str, after: str, words: str) -> None:
    assert before in SUITE
    suite_file.write_text(SUITE.replace(before, after))
    with pytest.raises(SuiteError) as error:
        read_suite(suite_file)
    assert words in str(error.value)


@pytest.mark.parametrize("pattern", ["", ".", "/etc/*", "../gap/*", "gap**/*.txt", "gap/\\u0000"])
def test_a_pattern_of_files_stays_below_the_folder_of_data(suite_file: Path, tmp_path: Path, pattern: str) -> None:
    suite_file.write_text(SUITE.replace('data = ["gap/*.txt"]', f'data = ["{pattern}"]'))
    words = r"entry 'public': data: .*expected a list of paths below the folder of data"
    for data in (None, tmp_path):
        with pytest.raises(SuiteError, match=words):
            read_suite(suite_file, data)


def test_all_faults_come_at_once(suite_file: Path) -> None:
    suite_file.write_text(SUITE.replace("title", "tilte").replace('"highs", "highs strong"]', '"other"]'))
    with pytest.raises(SuiteError) as error:
        read_suite(suite_file)
    assert len(error.value.faults) == 2


def test_an_unknown_suite_is_told_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"none\.toml"):
        suite_path("none.toml")


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_the_committed_suites_are_whole(path: Path) -> None:
    suite = read_suite(path)
    assert suite.trials or suite.skipped
    labels = [trial.label for trial in suite.trials]
    assert len(set(labels)) == len(labels)
    assert suite.about


@pytest.mark.parametrize("name", ["smoke", "small"])
def test_an_installation_runs_these_suites_without_the_repository(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, bench = Path(__file__).parents[3], Path("mast_opt") / "planner" / "bench"
    stated = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    for source, target in stated["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items():
        copy = shutil.copytree if (root / source).is_dir() else shutil.copy
        (tmp_path / target).parent.mkdir(parents=True, exist_ok=True)
        copy(root / source, tmp_path / target)
    installed = tmp_path / bench / "suite_files"
    shutil.copytree(root / bench / "suite_files", installed)
    monkeypatch.setattr("mast_opt.planner.bench.suites.toml_reader.FOLDER", installed)
    monkeypatch.chdir(tmp_path)
    found, whole = read_suite(suite_path(name)), read_suite(root / bench / "suite_files" / f"{name}.toml")
    peers = {trial.contestant.name for trial in whole.trials if trial.contestant.peer is not None}
    assert set(found.absent) == peers
    ours = [trial.label for trial in whole.trials if trial.contestant.peer is None]
    assert [trial.label for trial in found.trials] == ours
    assert [trial.facts["source"] for trial in found.trials if isinstance(trial.source, Stored)] == [
        trial.facts["source"]
        for trial in whole.trials
        if isinstance(trial.source, Stored) and trial.contestant.peer is None
    ]


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_a_suite_of_ours_leaves_out_what_is_not_installed(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(path.parent, tmp_path / "suite_files")
    monkeypatch.setattr("mast_opt.planner.bench.suites.toml_reader.FOLDER", tmp_path / "suite_files")
    found = read_suite(tmp_path / "suite_files" / path.name)
    assert found.trials or found.absent or found.skipped
    assert not any(isinstance(trial.source, (Stored, Program)) or trial.contestant.peer for trial in found.trials)


def test_files_are_looked_up_in_the_folders_above(suite_file: Path) -> None:
    below = suite_file.parent / "studies" / "mine"
    below.mkdir(parents=True)
    moved = suite_file.rename(below / suite_file.name)
    assert next(trial.label for trial in read_suite(moved).trials) == "tiny/tiny/highs/2s/seed0"


@pytest.mark.parametrize("name", ["smoke", "small"])
def test_these_suites_have_every_kind(name: str) -> None:
    suite = read_suite(next(path for path in SUITES if path.stem == name))
    assert {trial.source.kind for trial in suite.trials if not isinstance(trial.source, Program)} == set(kind_names())


def test_the_smoke_suite_is_short() -> None:
    smoke = read_suite(next(path for path in SUITES if path.stem == "smoke"))
    assert sum(trial.time_limit_s for trial in smoke.trials) <= 60


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title = ", "x = " + "[" * 2000 + "]" * 2000 + "\ntitle = "),
        ("title = ", "a." * 100_000 + "b = 1\ntitle = "),
        ("title = ", "x = " + "9" * 5000 + "\ntitle = "),
        ("title = ", "#" * (4 * 2**20) + "\ntitle = "),
        ("[[entry]]", '[contestants.other]\npeer = "' + "x" * 5000 + '"\n[[entry]]'),
        ("[[entry]]", '[contestants.other]\npeer = "a\\u0000b"\n[[entry]]'),
    ],
    ids=["deep", "long key", "long number", "long file", "long path", "null character"],
)
def test_a_hostile_suite_is_a_fault(suite_file: Path, old: str, new: str) -> None:
    text = suite_file.read_text()
    assert old in text
    suite_file.write_text(text.replace(old, new, 1))
    with pytest.raises(SuiteError):
        read_suite(suite_file)


@needs("links")
def test_a_pipe_is_refused_at_once(suite_file: Path) -> None:
    suite_file.unlink()
    os.mkfifo(suite_file)
    with pytest.raises(SuiteError, match="a pipe or a device"):
        read_suite(suite_file)
