"""The how-to of ``mast-opt serve --host slurm`` on real daemons of Slurm, to its end.

Run as root: ``python -m tests.hosts.slurm.real_host FOLDER`` prints each step, and ends with an error at the first one
that does not come about.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.hosts.slurm.real_slurm import call, cluster, wait_for


def state(number: int) -> tuple[str, str]:
    """State and nodes of a job."""
    words = call("squeue", "--noheader", "--all", f"--jobs={number}", "--states=all", "--format=%T|%N").stdout.strip()
    found, _, nodes = words.partition("|")
    return found, nodes


def submit(*options: str) -> int:
    """Number of a job that sleeps."""
    words = ["sbatch", "--parsable", "--output=/dev/null", *options, "--wrap", "sleep 7200"]
    return int(call(*words).stdout)


def ours(tier: int, *options: str) -> int:
    """Number of a held job that the loop is to start."""
    return submit("--hold", "--requeue", f"--comment=mast-opt tier={tier}", *options)


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, Path]]:
    """Address of the service, and the file of what it says."""
    said = folder / "said.txt"
    words = [sys.executable, "-m", "mast_opt", "serve", "--state", str(folder / "log"), "--host", "slurm"]
    with said.open("a") as out:
        mark = said.stat().st_size
        process = subprocess.Popen([*words, "--listen", "127.0.0.1:0"], stdout=out, stderr=out)
        try:
            wait_for(lambda: "Serving on" in said.read_text()[mark:] or process.poll() is not None, 300)
            found = re.search(r"Serving on (\S+?)/ ", said.read_text()[mark:])
            assert found is not None, said.read_text()
            yield found[1], said
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def jobs(address: str) -> dict[str, Any]:
    """Jobs of the loop by name."""
    with urllib.request.urlopen(f"{address}/v1/jobs") as answer:
        found = json.load(answer)
    return {one["job"]: one for one in found["jobs"]}


def runs(number: int, nodes: str = "") -> bool:
    """Whether a job runs, on these nodes if they are given."""
    found = state(number)
    return found[0] == "RUNNING" and nodes in ("", found[1])


def main(folder: Path) -> None:
    """Follow the how-to."""
    with cluster(folder / "slurm"):
        foreign = submit("-p", "batch", "-w", "a0", "--exclusive", "-N1")
        wait_for(lambda: runs(foreign))
        with served(folder) as (address, said):
            pair = ours(1, "-p", "batch", "-N2", "--gres=gpu:h100:8")
            wait_for(lambda: runs(pair), 120)
            print("a job of two nodes runs under one switch:", state(pair)[1], flush=True)
            assert state(pair)[1] in ("h[0-1]", "h[2-3]")
            low = [ours(8, "-p", "batch", "-N1", "--gres=gpu:a100:8") for _ in range(3)]
            wait_for(lambda: all(map(runs, low)), 120)
            print("three run on", sorted(state(one)[1] for one in low), "while others use a0", flush=True)
            assert sorted(state(one)[1] for one in low) == ["a1", "a2", "a3"]
            high = ours(0, "-p", "batch", "-N1", "--gres=gpu:a100:8")
            wait_for(lambda: runs(high), 180)
            stopped = [one for one in low if not runs(one)]
            print("a more important one runs on", state(high)[1], "; held again:", len(stopped), flush=True)
            assert len(stopped) == 1
            assert state(stopped[0])[0] == "PENDING"
            call("scancel", str(high))
            wait_for(lambda: runs(stopped[0]), 240)
            print("it has ended, and the one that was stopped runs again", flush=True)
            pid = int((folder / "slurm" / "slurmctld.pid").read_text())
            os.kill(pid, signal.SIGTERM)
            wait_for(lambda: "Slurm: " in said.read_text(), 120)
            print("without the controller:", re.findall(r"Slurm: .*", said.read_text())[-1], flush=True)
            again = subprocess.Popen(["slurmctld", "-D"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            wait_for(lambda: "it can be reached again" in said.read_text(), 180)
            print("and with it again:", re.findall(r"Slurm: .*", said.read_text())[-1], flush=True)
            assert all(map(runs, (pair, foreign, *low)))
            before = {name: (one["state"], one["attempt"]) for name, one in jobs(address).items()}
        with served(folder) as (address, _):
            time.sleep(12)
            after = {name: (one["state"], one["attempt"]) for name, one in jobs(address).items()}
            print("after a restart of the loop:", after, flush=True)
            assert after == before
            call("scancel", str(pair))
            wait_for(lambda: str(pair) not in jobs(address), 60)
    again.send_signal(signal.SIGTERM)
    again.wait(20)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
