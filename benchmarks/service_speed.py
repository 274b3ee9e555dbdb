"""Speed of the service: jobs submitted singly by many clients, and in lists, each answered when it is in the log.

    python -m benchmarks.service_speed --seconds 10 --clients 64 >> RUNS

The service is a process of its own, with an SQLite store and the simulated host; clients are a second process, over
plain sockets, and take processor time too. Jobs are cancelled work of no duration, so that the queue stays short. A
line of JSON for each; RUNS is benchmarks/data/service.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import statistics
import time
from pathlib import Path

from tests.service.processes import Service


async def post(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, body: bytes) -> int:
    head = "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\n\r\n"
    writer.write(head.encode() + body)
    answer = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    await reader.readexactly(int(length.split(b":")[1]))
    return int(answer.split()[1])


async def client(number: int, port: int, until: float, batch: int, found: list[tuple[float, int]]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    while time.perf_counter() < until:
        jobs = [{"job": f"c{batch}-{number}-{count + one}", "gpus": 1, "duration_s": 0} for one in range(batch)]
        count += batch
        body = json.dumps(jobs if batch > 1 else jobs[0]).encode()
        begun = time.perf_counter()
        status = await post(reader, writer, body)
        assert status == 201, status
        found.append((time.perf_counter() - begun, batch))
    writer.close()


async def measured(clients: int, port: int, seconds: float, batch: int) -> list[tuple[float, int]]:
    found: list[tuple[float, int]] = []
    until = time.perf_counter() + seconds
    await asyncio.gather(*(client(number, port, until, batch, found) for number in range(clients)))
    return found


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/service-speed"))
    given = parser.parse_args()
    shutil.rmtree(given.folder, ignore_errors=True)
    service = Service(given.folder)
    port = int(service.url.rstrip("/").rpartition(":")[2])
    try:
        for clients, batch in ((given.clients, 1), (4, 1000)):
            before = cpu_s(service.process.pid)
            found = asyncio.run(measured(clients, port, given.seconds, batch))
            times, jobs = sorted(time for time, _ in found), sum(count for _, count in found)
            cpu = cpu_s(service.process.pid) - before
            row = {"case": "submissions", "clients": clients, "batch": batch, "jobs": jobs, "seconds": given.seconds}
            wall_ms = round(1000 * statistics.median(times), 2)
            print(json.dumps({**row, "median_wall_ms": wall_ms, "cpu_us_per_job": round(1e6 * cpu / jobs, 1)}))
    finally:
        service.end(signal.SIGTERM)


if __name__ == "__main__":
    main()
