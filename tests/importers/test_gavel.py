"""Gavel's files: what is read becomes a policy's instance, and what is wrong is named."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt.core.errors import SourceError, UsageError
from mast_opt.live.policies import gavel
from mast_opt.planner.importers import importer_named

A, B, C = "('A', 1)", "('B', 1)", "('C', 2)"
RATES: dict[str, Any] = {
    "v100": {A: {"null": 2.0, B: [2.0, 3.0]}, B: {"null": 3.0, A: [3.0, 2.0]}, C: {"null": 4.0}},
    "k80": {A: {"null": 0.5}, B: {"null": 1.0}, C: {"null": 0}},
    "p100": {A: {"null": 1.0}, B: {"null": 2.0}},
}
LINE = "{}\tpython train.py -x %s\tfolder\t-n\t1\t{}\t{}\t{}\t-1.000000\t{}"
TRACE = "\n".join([LINE.format("A", 300, 1, 1, 0), LINE.format("B", 500, 1, 1, 10.5), ""])


def files(folder: Path, rates: object = RATES, trace: str = TRACE) -> list[Path]:
    paths = [folder / "throughputs.json", folder / "two.trace"]
    paths[0].write_text(json.dumps(rates))
    paths[1].write_text(trace)
    return paths


def test_the_instance_is_that_of_the_policy(tmp_path: Path) -> None:
    problem = importer_named("gavel").run(files(tmp_path), {"gpus": "v100=1,p100=1,k80=1"}, 0)
    assert problem.name == "two"
    assert problem.jobs.steps.tolist() == [300, 500]
    assert problem.jobs.submitted_s.tolist() == [0, 10.5]
    assert mast_opt.solve(problem).objective == pytest.approx(24 / 19)


def test_pairs_are_packed_where_they_were_measured(tmp_path: Path) -> None:
    given = {"gpus": "v100=1,p100=1,k80=1", "packing": "1", "name": "packed"}
    problem = importer_named("gavel").run(files(tmp_path), given, 0)
    assert len(problem.configurations) == 2 * 3 + 1
    assert mast_opt.solve(problem).objective == pytest.approx(1.5)


def test_other_policies_and_zipped_files(tmp_path: Path) -> None:
    paths = files(tmp_path, trace=TRACE + LINE.format("C", 100, 2, 4, 20) + "\n")
    for path in paths:
        path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    zipped = [path.with_name(f"{path.name}.gz") for path in paths]
    problem = importer_named("gavel").run(zipped, {"gpus": "v100=2,k80=1", "policy": "makespan"}, 0)
    assert problem.name == "two"
    assert problem.jobs.weight.tolist() == [1, 1, 4]
    assert sorted(problem.configurations.labels)[-1] == "job-3@v100"
    assert len(problem.configurations) == 5
    known = gavel.Jobs(np.array([[2, 0.5], [3, 1], [4, 0]]), gang=np.array([1, 1, 2]), steps=np.array([300, 500, 100]))
    assert mast_opt.solve(problem).objective == pytest.approx(gavel.solve(known, [2, 1], "makespan").objective)
    few = importer_named("gavel").run(
        zipped, {"gpus": "v100=2,k80=1", "jobs": "2", "policy": "cost", "price": "k80=1,v100=3"}, 0
    )
    assert len(few.jobs) == 2
    assert set(few.configurations.cost.tolist()) == {3, 1}


@pytest.mark.parametrize(
    ("rates", "trace", "words"),
    [
        ([], TRACE, "an object with a key for each worker type"),
        ({"v100": {}}, TRACE, "the worker type p100; there are: v100"),
        ({**RATES, "v100": 3}, TRACE, "the worker type v100"),
        (RATES, LINE.format("D", 1, 1, 1, 0), r"the job type \('D', 1\)"),
        ({**RATES, "v100": {A: 7, B: {}}}, TRACE, "an object with the key 'null'"),
        ({**RATES, "v100": {A: {"null": "2"}}}, TRACE, "a number from 0"),
        ({**RATES, "v100": {A: {"null": float("nan")}}}, TRACE, "a number from 0"),
        ({**RATES, "v100": {A: {"null": 1, B: [1]}}}, TRACE, "a list of two numbers"),
        ({kind: {A: {"null": 0}} for kind in RATES}, LINE.format("A", 1, 1, 1, 0), "above 0 on one of"),
        (RATES, "A\tB", "row 1: found '2 fields'; expected 10 fields"),
        (RATES, LINE.format("A", 0, 1, 1, 0), "above 0, up to 1e.12, in field 6"),
        (RATES, LINE.format("A", 1, 1, 1, "1_0"), "at least 0, up to 1e.12, in field 10"),
        (RATES, "", "at least one job"),
    ],
)
def test_what_is_wrong_with_the_files_is_named(tmp_path: Path, rates: object, trace: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        importer_named("gavel").run(files(tmp_path, rates, trace), {"gpus": "v100=1,p100=1,k80=1"}, 0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"gpus": "v100"}, "expected each type once"),
        ({"gpus": "v100=1,v100=2"}, "expected each type once"),
        ({"gpus": "v100=1,k80=0"}, "expected each type once"),
        ({"gpus": ""}, "expected the same types"),
        ({"gpus": "v100=1", "policy": "cost", "price": "k80=1"}, "expected the same types"),
        ({"gpus": "v100=1", "policy": "hierarchical"}, "needs the entity"),
        ({"gpus": "v100=1", "policy": "fifo"}, "las, ftf"),
        ({"gpus": "v100=1", "packing": "2"}, "packing 0 or 1"),
    ],
)
def test_what_is_wrong_with_the_settings_is_named(tmp_path: Path, given: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        importer_named("gavel").run(files(tmp_path), given, 0)


def test_several_inputs_from_python(tmp_path: Path) -> None:
    problem = mast_opt.import_instance("gavel", *files(tmp_path), gpus="v100=1,p100=1,k80=1", seed=3)
    assert problem.name == "two"
