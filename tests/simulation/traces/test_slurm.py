"""Slurm's accounting: times, states, and jobs that were requeued, resized, exclusive or heterogeneous."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from mast_opt.core.errors import SourceError
from mast_opt.live.simulation.traces.importers import TRACE_IMPORTERS
from mast_opt.live.simulation.traces.slurm.records import STATES, Stage, stage_of
from mast_opt.live.simulation.traces.trace import JobTrace, trace_from_tables
from mast_opt.planner.importers.notices import with_warnings

DATA = Path(__file__).parent / "data"
HEAD = "JobID|Partition|Submit|Start|End|Elapsed|NNodes|AllocTRES|ReqTRES|State"
NODES = "NODELIST|PARTITION|GRES|CPUS|MEMORY\nn1|gpu|gpu:a100:8|64|512000\nn2|gpu|gpu:a100:8|64|512000\n"
REAL_NODES = (
    "NODELIST|PARTITION|GRES|CPUS|MEMORY\nn1|batch|gpu:a100:4|8|16000\nn1|all|gpu:a100:4|8|16000\n"
    "n2|batch|gpu:a100:4|8|16000\nn3|mixed|gpu:a100:2,gpu:v100:2|8|16000\nn3|all|gpu:a100:2,gpu:v100:2|8|16000\n"
    "n4|cpu|(null)|8|16000\n"
)


def row(
    job: str,
    submit: str,
    start: str,
    end: str,
    elapsed: str,
    gpus: int,
    state: str = "COMPLETED",
    asked: int | None = None,
) -> str:
    held = f"cpu={4 * gpus},gres/gpu={gpus},mem={1000 * gpus}M,node=1" if gpus else ""
    want = gpus if asked is None else asked
    tres = "cpu=4,mem=1000M,node=1" + (f",gres/gpu={want}" if want else "")
    clock = [f"2024-06-01T{time}" if re.match(r"[0-9]{2}:", time) else time for time in (submit, start, end)]
    return "|".join([job, "gpu", *clock, elapsed, "1", held, tres, state])


def imported(
    folder: Path, *lines: str, nodes: str = NODES, head: str = HEAD, **given: str
) -> tuple[JobTrace, list[str]]:
    (folder / "sacct.txt").write_text("\n".join([head, *lines, ""]))
    return read(folder, folder / "sacct.txt", nodes, **given)


def read(folder: Path, path: Path, nodes: str, **given: str) -> tuple[JobTrace, list[str]]:
    (folder / "nodes.txt").write_text(nodes)
    found, warned = with_warnings(lambda: TRACE_IMPORTERS["sacct"].run([path, folder / "nodes.txt"], given, 0))
    return trace_from_tables(found.name, found.provenance, found.tables), [str(one) for one in warned]


def sizes(trace: JobTrace) -> dict[str, tuple[int, int, int]]:
    """Job → when it was handed in (s), its GPUs, and its GPU time (GPU s)."""
    jobs = trace.submissions
    gpus = [tasks * mgpu // 1000 for tasks, mgpu in zip(jobs.tasks.tolist(), jobs.mgpu.tolist(), strict=True)]
    seconds = [count * one // 1000 for count, one in zip(gpus, jobs.duration_ms.tolist(), strict=True)]
    times = (jobs.submitted_ms // 1000).tolist()
    return dict(zip(jobs.labels, zip(times, gpus, seconds, strict=True), strict=True))


def test_times_with_an_offset_are_real_times(tmp_path: Path) -> None:
    """Job 1 is handed in at 00:45 UTC and job 2 at 01:15, although the local clock says the opposite."""
    first = row("1", "2024-10-27T02:45:00+0200", "2024-10-27T02:45:00+0200", "2024-10-27T03:45:00+0100", "02:00:00", 8)
    second = row("2", "2024-10-27T02:15:00+0100", "2024-10-27T02:15:00+0100", "2024-10-27T03:15:00+0100", "01:00:00", 8)
    trace, warned = imported(tmp_path, first, second)
    assert sizes(trace) == {"1": (0, 8, 57_600), "2": (1800, 8, 28_800)}
    assert warned == []


def test_a_clock_that_is_set_back_or_forward_is_noticed(tmp_path: Path) -> None:
    back = row("1", "02:45:00", "02:45:00", "03:45:00", "02:00:00", 8)
    forward = row("2", "01:30:00", "01:30:00", "03:30:00", "01:00:00", 8)
    even = row("3", "01:30:00", "01:40:00", "03:40:00", "02:00:00", 8)
    _, warned = imported(tmp_path, back, forward, even)
    assert [words.partition(":")[0] + words[words.index("'") :][:3] for words in warned] == [
        "sacct.txt, column End'1'",
        "sacct.txt, column End'2'",
    ]
    assert "went back" in warned[0]
    assert "went forward" in warned[1]
    head = "JobID|Partition|Submit|End|Elapsed|NNodes|AllocTRES"
    _, warned = imported(
        tmp_path, "1|gpu|2024-10-27T02:45:00|2024-10-27T03:45:00|02:00:00|1|gres/gpu=8,cpu=8,mem=1M,node=1", head=head
    )
    assert "from Submit to End" in warned[-1]


def test_a_requeued_job_keeps_its_first_run_and_its_wait(tmp_path: Path) -> None:
    trace, warned = imported(
        tmp_path,
        row("7", "08:00:00", "08:10:00", "08:30:00", "00:20:00", 4, "REQUEUED"),
        row("7", "08:30:00", "09:00:00", "10:00:00", "01:00:00", 4),
        row("8", "08:05:00", "08:10:00", "08:20:00", "00:10:00", 4),
    )
    assert sizes(trace) == {"7": (0, 4, 4 * 4800), "8": (300, 4, 2400)}
    assert len(warned) == 1
    assert "'7': this job was requeued or resized" in warned[0]


@pytest.mark.parametrize("state", sorted(name for name, stage in STATES.items() if stage is Stage.INTERRUPTED))
def test_an_interrupted_run_is_not_the_end_of_its_job(tmp_path: Path, state: str) -> None:
    trace, warned = imported(tmp_path, row("7", "08:00:00", "08:10:00", "08:30:00", "00:20:00", 4, state))
    assert sizes(trace) == {"7": (0, 4, 4800)}
    assert "'7': this job was interrupted" in warned[0]
    assert "sacct --duplicates" in warned[0]


def test_jobs_that_wait_or_run_are_left_out(tmp_path: Path) -> None:
    trace, warned = imported(
        tmp_path,
        row("1", "08:00:00", "08:00:00", "09:00:00", "01:00:00", 1, "TIMEOUT"),
        row("2", "08:00:00", "08:00:00", "Unknown", "01:00:00", 1, "RUNNING"),
        row("3", "08:00:00", "Unknown", "Unknown", "00:00:00", 0, "PENDING"),
        row("4", "08:00:00", "Unknown", "08:30:00", "00:00:00", 0, "CANCELLED by 1000"),
        row("5", "08:00:00", "08:00:00", "08:30:00", "00:30:00", 2, "CANCELLED by 1000"),
    )
    assert sizes(trace) == {"1": (0, 1, 3600), "5": (0, 2, 3600)}
    assert "2 that never ran, 1 that had not ended" in trace.provenance
    assert warned == []


JOBS = "1 2 3 4 5 10 11 12 13 15+0 15+1 17 14_0 14_1 14_2 14_3"
"""Those of the real output that held GPUs."""


def test_states_of_slurm() -> None:
    assert stage_of(["PENDING", "REQUEUED"]) is Stage.INTERRUPTED
    assert stage_of(["RUNNING", "COMPLETING"]) is Stage.GOING
    assert stage_of(["CANCELLED by 7"]) is Stage.ENDED
    assert stage_of([]) is None
    with pytest.raises(ValueError, match="GONE"):
        stage_of(["GONE"])


def test_a_resized_job_is_one_job_with_both_sizes(tmp_path: Path) -> None:
    trace, warned = imported(
        tmp_path,
        row("7", "08:00:00", "08:00:00", "09:00:00", "01:00:00", 4, "RESIZING"),
        row("7", "09:00:00", "09:00:00", "11:00:00", "02:00:00", 1),
    )
    assert sizes(trace) == {"7": (0, 4, 4 * 3600 + 7200)}
    assert len(warned) == 1


def test_a_number_that_is_used_again_is_another_job(tmp_path: Path) -> None:
    trace, warned = imported(
        tmp_path,
        row("7", "08:00:00", "08:00:00", "09:00:00", "01:00:00", 4),
        row("7", "10:00:00", "10:00:00", "11:00:00", "01:00:00", 1),
    )
    assert sizes(trace) == {"7": (0, 4, 14_400), "7~2": (7200, 1, 3600)}
    assert "used again" in warned[0]


def test_the_same_row_twice_is_a_fault(tmp_path: Path) -> None:
    line = row("7", "08:00:00", "08:00:00", "09:00:00", "01:00:00", 4)
    with pytest.raises(SourceError, match="row 2, column JobID: found '7'; expected runs of a job one after the other"):
        imported(tmp_path, line, line)
    later = row("7", "08:00:00", "08:00:00", "12:00:00", "04:00:00", 4)
    with pytest.raises(SourceError, match="runs of a job one after the other"):
        imported(tmp_path, row("7", "08:00:00", "08:00:00", "10:00:00", "02:00:00", 4, "REQUEUED"), later)


def test_exclusive_jobs_by_what_they_held_or_asked_for(tmp_path: Path) -> None:
    lines = (
        row("1", "08:00:00", "08:00:00", "09:00:00", "01:00:00", 8, asked=0),
        row("2", "08:00:00", "08:00:00", "09:00:00", "01:00:00", 8, asked=1),
        row("3", "08:00:00", "08:00:00", "09:00:00", "01:00:00", 2),
    )
    trace, warned = imported(tmp_path, *lines)
    assert {name: gpus for name, (_, gpus, _) in sizes(trace).items()} == {"1": 8, "2": 8, "3": 2}
    assert "'1: 0 asked, 8 held': this job held more GPUs than it asked for" in warned[0]
    assert "--needs asked" in warned[0]
    trace, warned = imported(tmp_path, *lines, needs="asked")
    assert {name: gpus for name, (_, gpus, _) in sizes(trace).items()} == {"2": 1, "3": 2}
    assert trace.submissions.cpu_mcores.tolist() == [4000, 4000]
    assert warned == []
    trace, _ = imported(tmp_path, *lines, needs="asked", cpu_jobs="1")
    assert sizes(trace)["1"] == (0, 0, 0)
    assert trace.submissions.duration_ms.tolist() == [3_600_000] * 3
    trace, _ = imported(tmp_path, *lines, needs="asked-gpus")
    assert not trace.submissions.cpu_mcores.any()
    with pytest.raises(SourceError, match="what the job asked for"):
        imported(
            tmp_path,
            "1|gpu|2024-06-01T08:00:00|2024-06-01T09:00:00|01:00:00|1|cpu=1,gres/gpu=1",
            head="JobID|Partition|Submit|End|Elapsed|NNodes|AllocTRES",
            needs="asked",
            cpu_jobs="1",
        )


def test_restarts_that_are_not_in_the_file_are_said(tmp_path: Path) -> None:
    line = row("7", "08:00:00", "08:00:00", "09:00:00", "01:00:00", 4)
    _, warned = imported(tmp_path, line + "|2", head=HEAD + "|Restarts")
    assert "'7': this job was requeued more often than it has rows" in warned[0]


@pytest.mark.parametrize("form", ["txt", "json"])
def test_what_slurm_24_11_prints(tmp_path: Path, form: str) -> None:
    """Job 17 shrank from 2 GPUs (2 s) to 1 (13 s); 1 was requeued; 11 was exclusive; 15 is heterogeneous."""
    trace, warned = read(tmp_path, DATA / f"sacct-24.11.{form}", REAL_NODES)
    found = sizes(trace)
    assert set(found) == set(JOBS.split())
    assert (found["17"], found["1"], found["11"]) == ((1, 2, 17), (0, 2, 8), (1, 4, 8))
    said = {
        "'17': this job was requeued or resized",
        "'15': the components of this heterogeneous job",
        "'6': this job held shares of GPUs",
        "'11: 1 asked, 4 held'",
        "'5': this job asked for GPUs of several types at once",
        "'n3': this node has GPUs of several types",
        "without states" if form == "txt" else "'1': this job was interrupted",
    }
    assert len(warned) == len(said)
    assert all(any(words in one for one in warned) for words in said)
    at = trace.submissions.labels.index("5")
    assert (trace.submissions.tasks[at], trace.submissions.gpu_types[at]) == (3, {"a100": 1000, "v100": 1000})
    assert {server.name: (server.gpu_type, server.gpus) for server in trace.servers} == {
        "n1": ("a100", 4),
        "n2": ("a100", 4),
        "n3/a100": ("a100", 2),
        "n3/v100": ("v100", 2),
    }


def test_nodes_of_scontrol_have_what_is_left_for_jobs(tmp_path: Path) -> None:
    nodes = (Path(__file__).parents[2] / "importers/data/scontrol-24.11.json").read_text()
    trace, _ = read(tmp_path, DATA / "sacct-24.11.json", nodes, cpu_jobs="1")
    found = {server.name: (server.cpu_mcores, server.memory_mib) for server in trace.servers}
    assert found["n4"] == (6000, 14_000)
    drained = nodes.replace('"IDLE"', '"IDLE", "DRAIN"', 1)
    trace, warned = read(tmp_path, DATA / "sacct-24.11.json", drained)
    assert "n1" not in {server.name for server in trace.servers}
    assert any("'n1': this node takes no jobs" in words for words in warned)
    with pytest.raises(SourceError, match="a list of nodes"):
        read(tmp_path, DATA / "sacct-24.11.json", "{}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(SourceError, match="a node as Slurm prints it"):
            read(tmp_path, DATA / "sacct-24.11.json", '{"nodes": [{"name": "a"}]}')


def test_time_limits(tmp_path: Path) -> None:
    """The limit of a job, else that of its partition; a job that Slurm ended late has the limit that it kept."""
    head, nodes = (
        f"{HEAD}|Timelimit",
        NODES.replace("MEMORY\n", "MEMORY|TIMELIMIT\n").replace("512000", "512000|2:00:00"),
    )
    limits = {"1": "00:30:00", "2": "Partition_Limit", "3": "UNLIMITED", "4": "00:01:00"}
    lines = [f"{row(job, '08:00:00', '08:00:00', '08:01:03', '00:01:03', 1)}|{limit}" for job, limit in limits.items()]
    trace, _ = imported(tmp_path, *lines, head=head, nodes=nodes)
    assert trace.submissions.limit_ms.tolist() == [1_800_000, 7_200_000, 7_200_000, 63_000]
    trace, _ = imported(tmp_path, *lines, head=head)
    assert trace.submissions.limit_ms.tolist() == [1_800_000, -1, -1, 63_000]
    with pytest.raises(SourceError, match="Timelimit"):
        imported(tmp_path, lines[0] + " soon", head=head)


def test_time_limits_in_json(tmp_path: Path) -> None:
    trace, _ = read(tmp_path, DATA / "sacct-24.11.json", REAL_NODES)
    found = dict(zip(trace.submissions.labels, trace.submissions.limit_ms.tolist(), strict=True))
    assert (found["13"], found["15+0"]) == (525_600 * 60_000, -1)
