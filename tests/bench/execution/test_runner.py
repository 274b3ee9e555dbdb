"""Runs in processes of their own: what is recorded, what is skipped, and what a crash leaves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from mast_opt.core.solve_result import Event
from mast_opt.planner.bench.execution.runner import FinishedRun, execute, plan, warm
from mast_opt.planner.bench.execution.subprocess_run import run_child
from mast_opt.planner.bench.execution.worker import peak_memory_mb, thinned
from mast_opt.planner.bench.results.store import append, load
from mast_opt.planner.bench.suites.instances import Stored
from mast_opt.planner.bench.suites.suite import Contestant, Suite, Trial
from mast_opt.planner.bench.suites.toml_reader import read_suite
from mast_opt.problems.job_placement import JobPlacement

pytestmark = pytest.mark.second_tier

RUNNER = "mast_opt.planner.bench.execution.runner"
DIES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
SLEEPS = "import time; time.sleep(600)"
CRASH = 'raise SystemExit("the program says why")'
LAZY = "import pathlib, sys; plan = pathlib.Path(__file__).with_suffix('.json'); "
LAZY += "pathlib.Path(sys.argv[2]).write_bytes(plan.read_bytes()); "
LAZY += 'print(\'{"versions": {"lazy": "1"}, "solve_s": 0.5}\')'
FIGURES = "import argparse, json, os; p = argparse.ArgumentParser(); p.add_argument('--method'); "
FIGURES += "p.add_argument('--seed'); p.add_argument('--size'); a = p.parse_args(); "
FIGURES += "print('a library says hello'); "
FIGURES += "print(json.dumps({'method': a.method, 'size': int(a.size), 'processors': len(os.sched_getaffinity(0))}))"


def trial_of(suite_file: Path, program: str) -> Trial:
    (suite_file.parent / "program.py").write_text(program)
    suite_file.write_text(
        'solvers = ["ours"]\ntime_limits_s = [0.1]\n'
        '[[entry]]\nname = "program"\nprogram = "program.py"\narguments = { size = 3 }\n'
    )
    return read_suite(suite_file).trials[0]


def test_auto_is_a_contestant_as_any_solver(suite: Suite) -> None:
    first = suite.trials[0]
    record = run_child(replace(first, contestant=replace(first.contestant, name="auto", solver="auto")))
    assert record["status"] == "OPTIMAL"
    assert record["strategy"]["plan_by"] == "highs"


def test_a_suite_is_run_once_and_goes_on_where_it_stopped(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{RUNNER}.commit", lambda: "abc")
    monkeypatch.setattr("mast_opt.planner.bench.execution.subprocess_run.commit", lambda: "abc")
    finished: list[FinishedRun] = []
    two = replace(suite, trials=suite.trials[:2])
    first = execute(plan(replace(suite, trials=suite.trials[:1]), tmp_path), finished.append)
    rest = plan(two, tmp_path)
    assert (len(rest.todo), rest.done) == (1, 1)
    execute(rest, finished.append)
    assert plan(two, tmp_path).todo == ()
    assert len(plan(two, tmp_path, again=True).todo) == 2
    assert len(plan(two, tmp_path, "tiny strong").todo) == 0
    results = load(tmp_path / "two.jsonl")
    assert results[0] == json.loads(json.dumps(first[0]))
    assert [result["status"] for result in results] == ["OPTIMAL", "OPTIMAL"]
    assert finished[-1].left_s == 0
    result = results[0]
    assert result["objective"] == 0
    assert result["bound"] == 0
    assert {"read", "warm", "formulate", "solve", "verify", "wall"} <= result["runtime_s"].keys()
    assert result["peak_memory_mb"] > 20
    assert result["versions"]["highs"]
    assert result["machine"]["processors"] == os.cpu_count()
    assert result["events"]
    assert "terms" in result


def test_a_crash_and_a_sleeper_are_results(suite_file: Path) -> None:
    dead = run_child(trial_of(suite_file, DIES))
    assert dead["status"] == "ERROR"
    assert "ended -9" in dead["error"]
    late = run_child(trial_of(suite_file, SLEEPS), patience_s=3.0)
    assert late["status"] == "TIMEOUT"


def test_a_run_that_is_killed_takes_its_temporary_files_with_it(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, made, python = (tmp_path / name for name in ("temporary", "made", "python"))
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setenv("TMPDIR", str(place))
    python.write_text(f"#!/bin/sh\nmktemp -d > '{made}'\nkill -9 $$\n")
    python.chmod(0o755)
    monkeypatch.setattr("mast_opt.planner.bench.execution.subprocess_run.sys.executable", str(python))
    assert run_child(suite.trials[0])["error"].startswith("SIGKILL")
    assert place in Path(made.read_text()).parents
    assert list(place.iterdir()) == []


def test_terms_that_are_minimised_one_by_one_are_told_with_their_order(tmp_path: Path) -> None:
    (tmp_path / "order.toml").write_text(
        'time_limits_s = [20]\nsolvers = ["highs"]\n[[entry]]\nname = "e"\nkind = "data-placement"\n'
        'family = "lexicographic"\nsizes = { datasets = 3, workloads = 3, regions = 2 }\ninstance_seeds = [1]\n'
    )
    finished = run_child(read_suite(tmp_path / "order.toml").trials[0])
    assert finished["order"] == ["overload", "peak", "remote", "copy", "storage"]
    assert [stage["term"] for stage in finished["stages"]] == finished["order"]
    assert finished["stages"][0]["bound"] <= finished["terms"]["overload"]


def test_a_worker_that_dies_is_a_crash(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mast_opt.planner.bench.execution.subprocess_run.sys.executable", "/bin/false")
    dead = run_child(suite.trials[0])
    assert (dead["status"], dead["error"]) == ("CRASHED", "exit code 1: ")


def test_a_result_that_breaks_off_is_a_crash(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\nprintf \'{"status": "OPT\' > "$4"\nexit 3\n')
    python.chmod(0o755)
    monkeypatch.setattr("mast_opt.planner.bench.execution.subprocess_run.sys.executable", str(python))
    broken = run_child(suite.trials[0])
    assert (broken["status"], broken["error"]) == ("CRASHED", "exit code 3: ")


def test_a_program_tells_its_figures(suite_file: Path) -> None:
    trial = trial_of(suite_file, FIGURES)
    assert run_child(trial)["figures"] == {"method": "ours", "size": 3, "processors": 1}
    assert run_child(trial_of(suite_file, CRASH))["error"] == "program.py ended 1: the program says why"
    assert "'done' last; expected a JSON object" in run_child(trial_of(suite_file, "print('done')"))["error"]


def test_a_missing_solver_and_a_missing_peer_are_results(suite: Suite, tmp_path: Path) -> None:
    peer = tmp_path / "nobody.py"
    peer.write_text("")
    away = run_child(replace(suite.trials[0], contestant=Contestant("nobody", peer=peer)))
    assert away["status"] == "UNAVAILABLE"
    assert ".venv-nobody" in away["error"]


def test_a_result_is_of_the_commit_and_the_machine_that_made_it(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources that change during a benchmark, and a file of results that comes from elsewhere."""
    one = replace(suite, trials=suite.trials[:1])
    monkeypatch.setattr(f"{RUNNER}.commit", lambda: "earlier")
    before = plan(one, tmp_path)
    finished = {"status": "OPTIMAL", "objective": 0.0, "gap": 0.0, "runtime_s": {"wall": 1.0}, "commit": "later"}
    monkeypatch.setattr(f"{RUNNER}._one_by_one", lambda *_: (one for one in [(0, finished, None)]))
    (result,) = execute(before, lambda _: None)
    assert result["commit"] == "later"
    assert len(plan(one, tmp_path).todo) == 1
    monkeypatch.setattr(f"{RUNNER}.commit", lambda: "later")
    assert plan(one, tmp_path).todo == ()
    monkeypatch.setattr(f"{RUNNER}.machine", lambda: {"processor": "another"})
    assert len(plan(one, tmp_path).todo) == 1


def test_a_run_whose_solver_was_missing_is_made_again(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{RUNNER}.commit", lambda: "abc")
    one = replace(suite, trials=suite.trials[:1])
    ((key, _),) = plan(one, tmp_path).todo
    append(tmp_path / "two.jsonl", {"key": key, "status": "UNAVAILABLE"})
    assert len(plan(one, tmp_path).todo) == 1
    append(tmp_path / "two.jsonl", {"key": key, "status": "CRASHED"})
    assert plan(one, tmp_path).todo == ()


def test_a_plan_that_cannot_be_kept_is_told_and_stops_nothing(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plan").mkdir()
    finished: list[FinishedRun] = []
    outcome = {"status": "OPTIMAL", "objective": 0.0, "runtime_s": {"wall": 1.0}}
    two = replace(suite, trials=suite.trials[:2])
    monkeypatch.setattr(f"{RUNNER}._one_by_one", lambda *_: ((at, {**outcome}, tmp_path / "plan") for at in (0, 1)))
    execute(plan(two, tmp_path), finished.append)
    assert [one.best_known.partition(":")[0] for one in finished] == ["not saved as best known"] * 2
    assert "assignments" in finished[0].best_known


def test_a_peer_is_judged_by_the_verifier(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that places nothing, then one that places half of a gang."""
    peer = tmp_path / "lazy.py"
    peer.write_text(LAZY)
    monkeypatch.setenv("MAST_OPT_PEER_LAZY", sys.executable)
    trial = replace(suite.trials[0], contestant=Contestant("lazy", peer=peer))
    plan = {"plan": {"format": "mast-opt/1", "kind": "job-placement"}, "assignments": [], "preemptions": []}
    peer.with_suffix(".json").write_text(json.dumps(plan))
    idle = run_child(trial)
    assert (idle["status"], idle["objective"], idle["versions"]) == ("FEASIBLE", 1000.0, {"lazy": "1"})
    assert isinstance(trial.source, Stored)
    problem = trial.source.load()
    assert isinstance(problem, JobPlacement)
    half = {"job": "gang", "server": "w1", "tasks": 1, "gpu_index": None}
    half["cluster"] = problem.clusters.labels[problem.server_cluster[problem.servers.labels.index("w1")]]
    peer.with_suffix(".json").write_text(json.dumps({**plan, "assignments": [half]}))
    wrong = run_child(trial)
    assert wrong["status"] == "REJECTED"
    assert "gang" in wrong["error"]


def test_an_interrupt_keeps_what_is_done(suite_file: Path, tmp_path: Path) -> None:
    """Ctrl-C in the second run: the first one's line is there, and nothing is left running."""
    words = (
        "import os, signal, threading; from mast_opt.cli import main; "
        "from mast_opt.planner.bench.execution import runner; "
        "once = runner.append; "
        "runner.append = lambda *a: (once(*a), threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()); "
        f"raise SystemExit(main(['bench', {str(suite_file)!r}, '--out', {str(tmp_path)!r}]))"
    )
    ended = subprocess.run([sys.executable, "-c", words], capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 130, ended.stderr
    assert len(load(tmp_path / "two.jsonl")) in (1, 2)


def test_a_run_ends_with_the_process_that_waits_for_it(suite_file: Path, tmp_path: Path) -> None:
    script = f"import os, pathlib; pathlib.Path({str(tmp_path / 'pid')!r}).write_text(str(os.getpid())); "
    trial_of(suite_file, script + SLEEPS)
    words = [sys.executable, "-m", "mast_opt", "bench", str(suite_file), "--out", str(tmp_path)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as waiting:
        child = int(within(lambda: (tmp_path / "pid").read_text()))
        waiting.kill()

    def gone() -> str:
        try:
            return "" if Path(f"/proc/{child}/stat").read_text().split()[2] != "Z" else "zombie"
        except FileNotFoundError:
            return "gone"

    assert within(gone)


def within(look: Callable[[], str], patience_s: float = 60.0) -> str:
    """What there is to be seen, as soon as there is something."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with suppress(FileNotFoundError):
            if seen := look():
                return seen
        time.sleep(0.1)
    raise AssertionError("nothing to be seen")


def test_kernels_are_compiled_before_the_first_run(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, **_: commands.append(command))
    warm(suite.trials, words.append)
    assert (words, commands) == ([], []), "HiGHS has none of ours"
    ours = [replace(trial, contestant=Contestant("exhaustive", "exhaustive")) for trial in suite.trials]
    warm(ours, words.append)
    assert len(words) == len(commands) == 1
    assert "job-placement" in words[0]


def test_events_are_thinned_to_slots_of_time() -> None:
    events = [Event(0.1, None, 1.0), Event(0.101, 9.0, 1.0), Event(0.102, 8.0, 1.0), Event(0.5, 7.0, 1.0)]
    assert thinned(events) == [[0.1, None, 1.0], [0.102, 8.0, 1.0], [0.5, 7.0, 1.0]]
    assert len(thinned([Event(1 + n / 1e5, 10.0 - n, None) for n in range(10_000)])) < 5


def test_memory_is_that_of_this_process() -> None:
    assert 10 < peak_memory_mb() < 100_000
