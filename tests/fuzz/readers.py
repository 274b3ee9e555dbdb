"""Damages instances, certificates and events at random and reads them.

    python -m tests.fuzz.readers --seconds 600 --seed 1

Tables and headers are damaged in their text, workbooks and certificates inside their archives. Each case must end well
or with an error of mast-opt, within ``BUDGET_S`` and with ``ROOM`` bytes more than the process has after first reads.
A case that does not is printed with its number, and raises. ``--first N --cases 1`` runs that case again.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import resource
import shutil
import signal
import tempfile
import time
import zipfile
from pathlib import Path
from types import FrameType

import numpy as np

import mast_opt
from mast_opt.errors import MastOptError
from mast_opt.io import read_certificate, read_events
from mast_opt.kinds import kind_names

ROOM = 2**30
BUDGET_S = 20
WORDS = [
    b"", b"-1", b"0", b"1e308", b"nan", b"9" * 400, b"1e999999999", b'"', b"\0", b"\xff", b"\n", b",", b"=", b"[",
    b"{" * 5000, b"true", b"\xe2\x80\xae", b"a." * 500, b"XFD1048576", b"<", b"|O", b"(9999999999999,)",
]  # fmt: skip
TOKEN = re.compile(rb"[\w.\-]+")


def seeds(root: Path) -> None:
    """A sound instance of every kind in every format, one of them with a certificate and events."""
    for kind in kind_names():
        problem = mast_opt.generate(kind, seed=1)
        for format, name in {"csv": "csv", "parquet": "parquet", "xlsx": "i.xlsx", "json": "i.json"}.items():
            mast_opt.write(problem, root / kind / name, format)
    (root / "data-placement" / "csv" / "events.jsonl").write_text('{"elapsed_s": 1.0, "incumbent": 2, "stage": null}\n')
    np.savez_compressed(root / "data-placement" / "csv" / "certificate.npz", a=np.arange(9), b=np.zeros((3, 2)))


def damaged(rng: random.Random, data: bytes) -> bytes:
    """The bytes with one to four changes; the entries of an archive are changed inside of it, most of the time."""
    if data[:2] == b"PK" and rng.random() < 0.8:
        content = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as new:
            chosen = rng.choice(old.namelist())
            for name in old.namelist():
                new.writestr(name, damaged(rng, old.read(name)) if name == chosen else old.read(name))
        return content.getvalue()
    for _ in range(rng.randint(1, 4)):
        tokens = list(TOKEN.finditer(data))
        start, stop = rng.choice(tokens).span() if tokens else (0, 0)
        other = rng.choice(tokens).group() if tokens else b""
        action = rng.randrange(6)
        if action == 0:
            data = data[:start] + rng.choice(WORDS) + data[stop:]
        elif action == 1:
            data = data[:start] + other + data[stop:]
        elif action == 2:
            data = data[:start] + rng.choice(WORDS) + data[start:]
        elif action == 3:
            data = data[:start]
        elif action == 4:
            data = data[:start] + data[start : start + rng.randint(1, 400)] * rng.randint(2, 50) + data[stop:]
        else:
            at = rng.randrange(len(data) + 1)
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    return data


def case(seeds_at: Path, number: int, seed: int) -> bool:
    """Runs one case; whether everything was still read. Raises what no reader may raise."""
    rng = random.Random(f"{seed}/{number}")
    with tempfile.TemporaryDirectory() as folder:
        source = rng.choice(sorted(path for path in seeds_at.glob("*/*")))
        target = Path(folder) / source.name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
        victim = rng.choice(sorted(target.iterdir())) if target.is_dir() else target
        victim.write_bytes(damaged(rng, victim.read_bytes()))
        sound = True
        for read in (mast_opt.read, read_certificate, read_events) if target.is_dir() else (mast_opt.read,):
            try:
                read(target)
            except MastOptError as error:
                str(error)
                sound = False
        return sound


def late(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"more than {BUDGET_S} s")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--cases", type=int, default=10**9)
    given = options.parse_args()
    began, read, number = time.monotonic(), 0, given.first
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        seeds(root)
        for path in root.glob("*/*"):
            mast_opt.read(path)
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + ROOM, used + ROOM))
        signal.signal(signal.SIGALRM, late)
        while number < given.first + given.cases and time.monotonic() - began < given.seconds:
            signal.alarm(BUDGET_S)
            try:
                read += case(root, number, given.seed)
            except BaseException:
                print(f"seed {given.seed}, case {number}", flush=True)
                raise
            signal.alarm(0)
            number += 1
    print(f"{number - given.first} cases from seed {given.seed}: {read} were still sound; nothing found")


if __name__ == "__main__":
    main()
