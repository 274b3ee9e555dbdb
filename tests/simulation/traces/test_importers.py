"""Importers of job traces: what they read from files in their real form, and how they name what is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import SourceError, UsageError
from mast_opt.live.loop.log_checker import check_log
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.simulation.run import run_trace
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace, trace_from_tables, write_trace
from tests.simulation.traces import samples


@pytest.fixture
def files(tmp_path: Path) -> Path:
    samples.write(tmp_path)
    return tmp_path


def imported(folder: Path, name: str, *inputs: str, **given: str) -> JobTrace:
    paths = [folder / one for one in inputs or samples.INPUTS[name]]
    found = TRACE_IMPORTERS[name].run(paths, {**samples.GIVEN.get(name, {}), **given}, 0)
    return trace_from_tables(found.name, found.provenance, found.tables)


@pytest.mark.parametrize("name", samples.INPUTS)
def test_it_is_written_read_and_run(files: Path, name: str) -> None:
    found = TRACE_IMPORTERS[name].run([files / one for one in samples.INPUTS[name]], samples.GIVEN.get(name, {}), 0)
    write_trace(files / "out", found.name, found.provenance, found.tables)
    trace, direct = read_trace(files / "out"), trace_from_tables(found.name, found.provenance, found.tables)
    assert trace.servers == direct.servers
    assert trace.provenance == direct.provenance
    jobs = range(len(direct.submissions))
    assert [trace.submissions.spec(j) for j in jobs] == [direct.submissions.spec(j) for j in jobs]
    assert trace.submissions.submitted_ms.tolist() == direct.submissions.submitted_ms.tolist()
    done = run_trace(trace, "mast")
    assert check_log(done.events(), all_end=True, durations=True) == ()
    assert metrics(done.rows).finished == len(jobs)


def test_openb(files: Path) -> None:
    trace = imported(files, "openb")
    jobs = trace.submissions
    assert (jobs.labels, jobs.submitted_ms.tolist()) == (("p0", "p1", "p2"), [0, 60_000, 100_000])
    assert (jobs.duration_ms.tolist(), jobs.mgpu.tolist()) == ([3_590_000, 30_000, 1_000], [1000, 460, 0])
    assert (jobs.tier.tolist(), jobs.memory_mib.tolist()) == ([0, 2, 1], [16384, 12288, 4096])
    assert jobs.gpu_types == {1: {"G2": 460, "T4": 460}}
    assert [(server.gpu_type, server.gpus, server.memory_mib) for server in trace.servers] == [
        ("none", 0, 262144),
        ("G2", 8, 393216),
        ("T4", 2, 262144),
    ]
    assert "1 that were never placed are left out" in trace.provenance


def test_gavel(files: Path) -> None:
    trace = imported(files, "gavel-trace")
    jobs = trace.submissions
    assert (jobs.submitted_ms.tolist(), jobs.duration_ms.tolist()) == ([0, 60_500], [150_000, 250_000])
    assert (jobs.tasks.tolist(), jobs.mgpu.tolist()) == ([1, 2], [1000, 1000])
    assert jobs.workload == ("A (batch size 1)", "B")
    assert [(server.gpu_type, server.gpus) for server in trace.servers] == [("v100", 2), ("k80", 2), ("k80", 2)]
    assert trace.speeds.alone == {
        ("A (batch size 1)", "v100", 1): 2_000_000,
        ("A (batch size 1)", "k80", 1): 500_000,
        ("B", "v100", 2): 4_000_000,
        ("B", "k80", 2): 1_000_000,
    }


def test_pairs_of_gavel(files: Path) -> None:
    rates = json.loads((files / "throughputs.json").read_text())
    one = "('A (batch size 1)', 1)"
    rates["v100"][one][one] = [1.5, 1.5]
    (files / "throughputs.json").write_text(json.dumps(rates))
    found = imported(files, "gavel-trace", packing="1").speeds.packed
    assert found == {("A (batch size 1)", "A (batch size 1)", "v100", 1): 1_500_000}
    assert imported(files, "gavel-trace").speeds.packed == {}


def test_sacct_as_text_and_as_json_is_the_same(files: Path) -> None:
    text, tree = (imported(files, "sacct", name, "sinfo.txt") for name in ("sacct.txt", "sacct.json"))
    by_name = [
        {name: (trace.submissions.spec(j), trace.submissions.submitted_ms[j])
         for j, name in enumerate(trace.submissions.labels)}
        for trace in (text, tree)
    ]  # fmt: skip
    assert by_name[0] == by_name[1]
    assert set(by_name[0]) == {"9", "10", "11_1", "12", "14"}
    one, two = by_name[0]["9"][0], by_name[0]["10"][0]
    assert (one.tasks, one.mgpu, one.cpu_mcores, one.memory_mib) == (1, 2000, 2000, 1000)
    assert (two.tasks, two.mgpu, two.cpu_mcores, two.memory_mib) == (2, 4000, 2000, 2000)
    assert (one.gpu_types, by_name[0]["12"][0].gpu_types) == ({"a100": 2000}, None)
    assert (one.tenant, one.home_region, one.duration_ms) == ("ads", "gpu", 6000)
    assert by_name[0]["14"][0].duration_ms == 1000
    assert "1 that never ran, 1 that had not ended, 1 that had no GPU" in text.provenance
    assert text.regions == ("gpu", "debug", "admin")
    assert [server.name for server in text.servers] == ["n1", "n2", "n3", "n4"]


def test_settings_of_sacct(files: Path) -> None:
    trace = imported(files, "sacct", needs="gpus", tenant="user", tiers="normal=3")
    assert not trace.submissions.cpu_mcores.any()
    assert not trace.submissions.memory_mib.any()
    assert set(trace.submissions.tenant) == {"ann"}
    assert set(trace.submissions.tier.tolist()) == {3}
    assert metrics(run_trace(trace, "fifo").rows).finished == 5
    all_jobs = imported(files, "sacct", cpu_jobs="1")
    at = all_jobs.submissions.labels.index("13")
    assert (all_jobs.submissions.mgpu[at], all_jobs.submissions.cpu_mcores[at]) == (0, 2000)
    assert len(all_jobs.servers) == 5


def test_later_slurm_wraps_numbers_and_lists_states(files: Path) -> None:
    tree = json.loads((files / "sacct.json").read_text())
    for job in tree["jobs"]:
        job["state"]["current"] = [job["state"]["current"]]
        task = job["array"]["task_id"]
        job["array"]["task_id"] = {"set": task is not None, "infinite": False, "number": task or 0}
        job["time"]["submission"] = {"set": True, "infinite": False, "number": job["time"]["submission"]}
    (files / "later.json").write_text(json.dumps(tree))
    later, now = (imported(files, "sacct", name, "sinfo.txt") for name in ("later.json", "sacct.json"))
    assert later.submissions.labels == now.submissions.labels
    assert np.array_equal(later.submissions.submitted_ms, now.submissions.submitted_ms)


def test_partitions_that_share_nodes_are_one_region(files: Path) -> None:
    moved = (files / "sacct.txt").read_text().replace("12|ann|ads|gpu|", "12|ann|ads|long|")
    (files / "sacct.txt").write_text(moved)
    jobs = imported(files, "sacct").submissions
    assert jobs.home_region[jobs.labels.index("12")] == "gpu"


FAULTS = [
    ("sacct", "sacct.txt", "00:00:06", "six", "sacct.txt, row 1, column Elapsed: found 'six'; expected a time such as"),
    ("sacct", "sacct.txt", "2026-11-25T22:19:12|", "soon|", "column Submit"),
    ("sacct", "sacct.txt", "mem=1000M", "mem=lots", "row 1, column AllocTRES"),
    ("sacct", "sacct.txt", "9|ann", "9|a|b", "row 1: found '9|a|b|"),
    ("sacct", "sacct.txt", "JobID|", "Job|", "row 1: found 'Job|User|"),
    ("sacct", "sacct.txt", "|Elapsed|", "|Took|", "a column Elapsed"),
    ("sacct", "sacct.txt", "|COMPLETED\n13|", "|GONE\n13|", "column State: found 'GONE'; expected a state of Slurm"),
    ("sacct", "sacct.txt", "2026-11-25T22:19:12|2", "2026-11-25T22:19:12+0100|2", "times of one kind"),
    ("sacct", "sinfo.txt", "n4|debug", "n4|other", "column Partition: found 'debug'; expected a partition that sinfo"),
    ("sacct", "sinfo.txt", "n1|gpu|gpu:a100:4", "n1|gpu|gpu:a100:four", "row 1, column GRES"),
    ("openb", "pods.csv", ",3700,", ",20,", "pods.csv, row 1, column deletion_time: found '20'"),
    ("openb", "pods.csv", ",scheduled_time", ",placed", "a column scheduled_time"),
    ("openb", "pods.csv", "460", "1460", "row 2, column gpu_milli"),
    ("openb", "pods.csv", "p1,", "p0,", "column name: expected each pod once"),
    ("gavel-trace", "two.trace", "\t2\t1\t-1", "\t2.5\t1\t-1", "a whole number of workers"),
    ("gavel-trace", "two.trace", "\t60.5", "", "10 fields between tabs"),
    ("gavel-trace", "two.trace", "\t300\t", "\t0.5\t", "a whole number of steps"),
    ("gavel-trace", "throughputs.json", "2.0", "-2.0", "a number from 0 to"),
    ("philly", "philly.csv", "900.0", "-1", "row 2, column duration"),
    ("philly", "clusters.csv", "vc1", "vc0", "each virtual cluster once"),
]


@pytest.mark.parametrize(("name", "file", "old", "new", "words"), FAULTS)
def test_faults_are_named(files: Path, name: str, file: str, old: str, new: str, words: str) -> None:
    text = (files / file).read_text()
    assert old in text
    (files / file).write_text(text.replace(old, new))
    with pytest.raises(SourceError) as raised:
        imported(files, name)
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('"elapsed": 6', '"elapsed": "six"', ),
        ('"partition": "gpu"', '"partition": 5'),
        ('"allocation_nodes": 2', '"allocation_nodes": -2'),
        ('"count": 1000}', '"count": null}'),
    ],
)  # fmt: skip
def test_faults_of_json_are_named_by_the_way_to_them(files: Path, change: str, words: str) -> None:
    text = (files / "sacct.json").read_text()
    assert change in text
    (files / "sacct.json").write_text(text.replace(change, words, 1))
    with pytest.raises(SourceError, match=r"sacct\.json: jobs\[[0-9]\]\.(time\.elapsed|partition|alloc|tres)"):
        imported(files, "sacct", "sacct.json", "sinfo.txt")


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("sacct", {"needs": "cores"}),
        ("sacct", {"tenant": "team"}),
        ("sacct", {"tiers": "high"}),
        ("sacct", {"needs": "gpus", "cpu_jobs": "1"}),
        ("gavel-trace", {"packing": "2"}),
        ("gavel-trace", {"server": "3"}),
        ("gavel-trace", {"gpus": "v100=1.5"}),
        ("gavel-trace", {"gpus": "v100=1000000000"}),
    ],
)
def test_settings_that_cannot_be(files: Path, name: str, given: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="expected"):
        imported(files, name, **given)


@pytest.mark.parametrize(
    ("name", "text"),
    [("sacct", "{"), ("sacct", "[]"), ("sacct", ""), ("sacct", '{"jobs": {}}'), ("sacct", '{"jobs": [1]}')],
)
def test_other_files_are_refused(files: Path, name: str, text: str) -> None:
    (files / "odd").write_text(text)
    with pytest.raises(SourceError):
        imported(files, name, "odd", "sinfo.txt")
