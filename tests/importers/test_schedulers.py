"""Inputs of schedulers as CSV files: the instances have the known answers, and what is wrong is named."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import SourceError, UsageError
from mast_opt.planner.importers import importer_named
from tests.policies.inputs import JOB

ALLOX = "job,machine,seconds\na,cpu,20\na,gpu,10\nb,cpu,30\nb,gpu,10\nc,cpu,8\nc,gpu,6\n"
GANDIVA = (
    "job,other,rate\n"
    + "".join(f"{one},,1\n" for one in "abcd")
    + "".join(
        f"{pair[0]},{pair[1]},{worth / 2}\n{pair[1]},{pair[0]},{worth / 2}\n"
        for pair, worth in {"ab": 1.6, "cd": 1.1, "ac": 1.5, "bd": 1.5, "ad": 1.2, "bc": 1.2}.items()
    )
)
FAIR = "user,gpu_type,rate\nann,v100,2\nann,k80,1\nbob,v100,5\nbob,k80,1\n"
THEMIS = "app,gpus,value\n" + "".join(
    f"{app},{gpus},{value}\n"
    for app, values in {"a": (0, 0.25, 0.5, 0.75, 1), "b": (0, 0.5, 0.6, 0.65, 0.7)}.items()
    for gpus, value in enumerate(values)
)
SYNERGY = "job,cpu_cores,rate,fair\n" + "".join(
    f"{job},{cores},{rate},{'true' if cores == 3 else ''}\n"
    for job, rates in {"alexnet": (0.2, 0.4, 0.5, 0.6, 0.7, 1.0, 1.5), "gnmt": (0.6, 1, 1, 1, 1, 1, 1)}.items()
    for cores, rate in zip((1, 2, 3, 4, 5, 6, 12), rates)
)
SINGULARITY = "job,gpus,weight,guaranteed\npremium,8,3,0.95\nstandard,8,2,0.7\nbasic,4,1,\n"
POLLUX = "job,gpus,goodput\n" + "".join(
    f"{job},{gpus},{JOB.best(nodes, gpus)}\n" for job in "xyz" for nodes, gpus in ((1, 1), (1, 2), (2, 4))
)
SIA = "job,gpu_type,gpus,goodput\na,t4,1,10\na,t4,2,19\na,v100,1,30\na,v100,2,55\nb,t4,1,10\nb,t4,2,12\nb,v100,2,12\n"
FILES = {
    "allox": (ALLOX, {}, 38),
    "gandiva": (GANDIVA, {"gpus": "2"}, 3.0),
    "gandiva-fair": (FAIR, {"gpus": "v100=4,k80=4"}, 21),
    "themis": (THEMIS, {"gpus": "4"}, -0.980829),
    "synergy": (SYNERGY, {"cpu_cores": "6"}, 1.6),
    "singularity": (SINGULARITY, {"capacity": "14"}, 36),
    "pollux": (POLLUX, {"nodes": "2", "gpus_per_node": "2"}, 3.728339),
    "sia": (SIA, {"gpus": "t4=2,v100=2"}, 1.339272),
}


def run(folder: Path, importer: str, text: str, settings: dict[str, str]) -> Any:
    path = folder / "measured.csv"
    path.write_text(text)
    return importer_named(importer).run([path], settings, 0)


@pytest.mark.parametrize("importer", FILES)
def test_the_instance_has_the_known_optimum(tmp_path: Path, importer: str) -> None:
    text, settings, optimum = FILES[importer]
    problem = run(tmp_path, importer, text, settings)
    assert problem.name == "measured"
    assert mast_opt.solve(problem).objective == pytest.approx(optimum, abs=1e-6)


def test_labels_are_those_of_the_file(tmp_path: Path) -> None:
    text, settings, _ = FILES["synergy"]
    tables = mast_opt.to_tables(run(tmp_path, "synergy", text, settings))
    assert tables["jobs"]["job"].to_list() == ["alexnet", "gnmt"]
    assert "alexnet-12cores" in tables["configurations"]["configuration"].to_list()
    assert tables["resources"]["resource"].to_list() == ["cpu_cores"]
    clashing = "job,other,rate\na,,1\na-b,,1\nb-c,,1\nc,,1\n"
    tables = mast_opt.to_tables(run(tmp_path, "gandiva", clashing, {}))
    assert tables["jobs"]["job"].to_list() == ["a", "a-b", "b-c", "c"]
    assert "j1-j3" in tables["configurations"]["configuration"].to_list()


def test_memory_counts_where_there_is_a_limit(tmp_path: Path) -> None:
    text = "job,cpu_cores,memory_gb,rate,fair\na,1,10,1,true\na,2,20,2,\nb,1,10,1,true\nb,2,20,2,\n"
    for memory, total in ((0, 4), (30, 3)):
        problem = run(tmp_path, "synergy", text, {"cpu_cores": "4", "memory_gb": str(memory)})
        assert mast_opt.solve(problem).objective == pytest.approx(total)


def test_tickets_and_demand_are_those_of_the_users(tmp_path: Path) -> None:
    settings = {"gpus": "v100=4,k80=4", "tickets": "ann=3,bob=1", "demand": "ann=6,bob=8"}
    problem = run(tmp_path, "gandiva-fair", FAIR, settings)
    assert problem.jobs.min_rate == pytest.approx([9, 6])


@pytest.mark.parametrize(
    ("importer", "text", "words"),
    [
        ("allox", ALLOX.replace("c,gpu,6", "c,cpu,6"), "row 6: expected each combination once"),
        ("allox", ALLOX.replace("20", "0"), "row 1, column seconds: found '0'"),
        ("allox", ALLOX.replace("machine", "where"), "a column machine"),
        ("gandiva", "job,other,rate\na,,1\nb,a,1\n", "a row of b alone"),
        ("gandiva", "job,other,rate\na,,1\na,z,1\n", "found 'z'; expected a job that has a row"),
        ("gandiva-fair", FAIR.replace("bob,k80", "bob,t4"), "found 't4'; expected one of: v100, k80"),
        ("themis", THEMIS + "b,5,1\n", "found '5'; expected at most 4 GPUs"),
        ("synergy", SYNERGY.replace("alexnet,3,0.5,true", "alexnet,3,0.5,"), "one row of alexnet with fair = true"),
        ("singularity", SINGULARITY + "basic,4,1,\n", "row 4, column job: found 'basic'; expected each job once"),
        ("singularity", SINGULARITY.replace("0.95", "95"), "at most 1"),
        ("pollux", POLLUX + "x,3,1\n", "found '3'; expected one of"),
        ("pollux", "job,gpus,goodput\nx,2,1\n", "goodput of x above 0 on 1 GPU"),
        ("sia", SIA + "a,k80,1,1\n", "found 'k80'; expected one of: t4, v100"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, importer: str, text: str, words: str) -> None:
    with pytest.raises(SourceError, match=re.escape(words)):
        run(tmp_path, importer, text, FILES[importer][1])


@pytest.mark.parametrize(
    ("importer", "settings", "words"),
    [
        ("sia", {"gpus": ""}, "setting gpus is empty"),
        ("gandiva-fair", {"tickets": "ann=1"}, "expected each of: ann, bob"),
        ("synergy", {"shares": "half"}, "expected whole or fractional"),
        ("pollux", {"nodes": "2", "gpus_per_node": "2", "objective": "max"}, "sum, harmonic"),
        ("themis", {"gpus": "99999999"}, "at most"),
    ],
)
def test_what_is_wrong_with_a_setting_is_named(
    tmp_path: Path, importer: str, settings: dict[str, str], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        run(tmp_path, importer, FILES[importer][0], settings)
