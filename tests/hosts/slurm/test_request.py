"""Options of sbatch, scripts and records of squeue as requests."""

from __future__ import annotations

import pytest

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.slurm.request import Ask, Per, ask_in, ask_of, limit_s, memory_mib, names_in, script_options


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("n[0-2,7],login", ("n0", "n1", "n2", "n7", "login")),
        ("r[1-2]n[08-10]", ("r1n08", "r1n09", "r1n10", "r2n08", "r2n09", "r2n10")),
        ("", ()),
    ],
)
def test_lists_of_names(text: str, names: tuple[str, ...]) -> None:
    assert names_in(text) == names


@pytest.mark.parametrize("text", ["n[0-x]", "n[9-7]", "n[0-99999999]", "n[0-9999]m[0-9999]"])
def test_lists_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError):
        names_in(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 1800), ("1:30", 90), ("2:00:00", 7200), ("1-12", 129600), ("1-0:30", 88200), ("infinite", None)],
)
def test_time_limits(text: str, seconds: int | None) -> None:
    assert limit_s(text) == seconds


def test_memory() -> None:
    assert [memory_mib(text) for text in ("512", "4G", "1T", "1500K")] == [512, 4096, 1024**2, 2]
    with pytest.raises(InputError, match="4 GB"):
        memory_mib("4 GB")


def test_options_of_a_script_end_at_its_first_command() -> None:
    text = (
        '#!/bin/sh\n#SBATCH -N 2 --gres=gpu:8  # all of them\n\n# a note\n#SBATCH -J "a b"\nsrun x\n#SBATCH -p late\n'
    )
    assert script_options(text) == ["-N", "2", "--gres=gpu:8", "-J", "a b"]


def test_options() -> None:
    words = "-p a,b -N2-4 --ntasks-per-node=4 -c 2 --mem-per-gpu=10G --gpus-per-node=h100:8 -t 90 -w n[0-1] -x n7 -J x"
    assert ask_of(words.split()) == Ask(
        ("a", "b"), 2, 4, 8, 4, 2, 10240, Per.GPU, (("h100", 8),), Per.NODE, False, "", ("n0", "n1"), ("n7",), 5400
    )
    assert ask_of(["-n", "10", "--ntasks-per-node", "4"]).least_nodes == 3
    assert ask_of(["-N", "4", "-n", "2"]).least_nodes == 2
    assert ask_of(["-N2", "-N", "3"]).tasks == 3


@pytest.mark.parametrize(
    "words",
    [
        "--reservation=r",
        "--gres=gpu:2 -G 4",
        "--gres=license:2",
        "-N x",
        "--mem=1G --mem-per-cpu=1G",
        "--gres=gpu:x:y:z",
    ],
)
def test_options_that_cannot_be_weighed_are_refused(words: str) -> None:
    with pytest.raises(InputError):
        ask_of(words.split())


def test_records_of_old_and_new_versions_say_the_same() -> None:
    old = {
        "partition": "a,b", "node_count": 2, "max_nodes": 2, "tasks": 4, "cpus_per_task": 2, "memory_per_node": 5000,
        "memory_per_cpu": None, "tres_per_node": "gres:gpu:h100:8", "shared": "none", "time_limit": 30, "qos": "q",
    }  # fmt: skip
    new = {
        **{key: {"set": True, "number": value} for key, value in old.items() if isinstance(value, int)},
        "memory_per_cpu": {"set": False, "infinite": False, "number": 0}, "partition": "a,b", "qos": "q",
        "tres_per_node": "gres/gpu:h100=8", "shared": ["none"],
    }  # fmt: skip
    expected = Ask(
        ("a", "b"), 2, 2, 4, None, 2, 5000, Per.NODE, (("h100", 8),), Per.NODE, exclusive=True, limit_s=1800, qos="q"
    )
    assert ask_in(old) == ask_in(new) == expected
    assert ask_in({**old, "shared": None, "time_limit": None}).exclusive is False
