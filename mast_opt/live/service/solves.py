"""Solves that people ask for: each is a process of its own over a folder, and ends as an event of the log.

A folder holds the instance, the settings, incumbents as they come, the plan and the outcome. The log has ``SolveAsked``
before the process begins and ``SolveEnded`` after its plan is on the disk. A process whose service has ended keeps its
incumbent and ends; the next service finds what it has left.
"""

import json
import secrets
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import msgspec

from mast_opt.core.errors import MastOptError
from mast_opt.core.solve_result import Status
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.slow_path import Planned, SlowPath
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.service import solve_files as files
from mast_opt.live.service.live import Live
from mast_opt.live.service.one_solve import STOPPING, Outcome, Solve, SolveLimits, begin_process, wait_for
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.requests import INGRESS, SolveRequest
from mast_opt.live.service.turn_requests import Request, Unavailable
from mast_opt.live.slow_paths import data_path, servers_path
from mast_opt.live.slow_paths.data_path import DataPath, DataPathParams
from mast_opt.live.slow_paths.network_limits import NetworkLimits
from mast_opt.live.slow_paths.servers_path import ServersPath
from mast_opt.live.store.errors import StoreError
from mast_opt.live.store.records import StoredPlan
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.planner.io import read, read_plan, write
from mast_opt.planner.io.atomic import new_file

MOST_AT_ONCE = 2
MOST_KEPT = 50
"""Solves whose folders are kept; those of plans that are carried out are kept in addition."""
STOP_S = 60.0
"""Seconds that the end of a service waits for its solves; one that takes longer leaves its plan to the next service."""
ERROR_CHARACTERS = 1000
_PATHS: Mapping[str, tuple[str, Callable[[SolveRequest, State], SlowPath]]] = {
    data_path.NAME: ("tetris", lambda asked, state: DataPath(
        NetworkLimits({name: INGRESS.in_base_units(tb) for name, tb in asked.ingress_tb_per_day.items()}),
        DataPathParams(copy_days=asked.copy_days, copies_min=asked.copies_min),
    )),
    servers_path.NAME: ("ras", lambda asked, state: ServersPath(
        {server.name: server.rack for server in state.inventory.server_of.values()}
    )),
}  # fmt: skip
"""Path → its own solver, and what makes it; a rack is what fails at once."""


class Solves:
    """The solves of a service.

    Args:
        folder: of all of them, a folder each; None where a service was given none, and solves nothing.
        limits: of each.
    """

    def __init__(self, live: Live, store: SqlStore, folder: Path | None, limits: SolveLimits | None = None) -> None:
        self._live, self._store, self._folder = live, store, folder
        self._limits = limits or SolveLimits()
        self.left_aside: list[str] = []
        """Files that an earlier service has left and that cannot be read, and why."""
        self._lock = threading.Lock()
        self._solves: dict[str, Solve] = {}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._watchers: list[threading.Thread] = []
        self._beginning = 0
        self._closing = False

    # --- from outside ---

    def resume(self) -> None:
        """Take up the solves that an earlier service has left; the loop has begun."""
        if self._folder is not None and self._folder.is_dir():
            for path in sorted(self._folder.glob(f"*/{files.ASKED}")):
                try:
                    solve = Solve.read(path)
                except (OSError, ValueError, TypeError) as error:
                    self.left_aside.append(f"{path}: {error}")
                else:
                    self._solves[solve.id] = solve
        with self._live.state() as state:
            awaited = {path: state.plans.awaited(path) for path in state.plans.paths() if state.plans.awaited(path)}
        for solve in sorted(self._solves.values(), key=lambda one: -one.asked_ms):
            if awaited.get(solve.path) == solve.checksum:
                del awaited[solve.path]
                self._watch(solve)
            else:
                self._outcome(solve)
        for name, checksum in awaited.items():
            self._tell(ev.SolveEnded(name, checksum, files.LOST))

    def all(self) -> list[Solve]:
        """Every solve of the service, the newest first."""
        with self._lock:
            return sorted(self._solves.values(), key=lambda one: (-one.asked_ms, one.id))

    def one(self, name: str) -> Solve:
        """The solve with that identifier. Raises Problem."""
        with self._lock:
            if name not in self._solves:
                raise Problem(404, "no-solve", f"there is no solve {name}")
            return self._solves[name]

    def folder_of(self, solve: Solve) -> Path:
        """Folder of the files of a solve."""
        return self._root() / solve.id

    def prepare(self, asked: SolveRequest, by: str) -> Solve:
        """Write the present instance for a path, in a folder of its own. ``launch`` or ``discard`` follows. Raises
        Problem: 409 where there is nothing to plan, 429 where enough solves run."""
        root = self._root()
        self._limits.check(asked)
        self._tidy(root)
        with self._lock:
            running = sum(not solve.ended for solve in self._solves.values()) + self._beginning
            if running >= MOST_AT_ONCE:
                raise Problem(429, "solves", f"{running} solves run already", headers={"Retry-After": "30"})
            self._beginning += 1
        try:
            own, path_of = _PATHS[asked.path]
            with self._live.state() as state:
                snapshot = Snapshot(state, ())
                snapshot.now_ms = now = self._live.now_ms()  # the last turn may be long ago
                question = path_of(asked, state).ask(snapshot)
            if question is None:
                raise Problem(409, "nothing-to-plan", f"path {asked.path} has nothing to plan for now")
            solver = asked.solver or own
            solve = Solve(f"{asked.path}-{secrets.token_hex(6)}", asked.path, solver, by, question.checksum, now)
            folder = root / solve.id
            folder.mkdir(mode=0o700, parents=True)
            write(question.problem, folder / files.INSTANCE)
            settings = {name: getattr(asked, name) for name in ("time_limit_s", "gap", "seed", "threads")}
            settings |= {"from_plan": self._earlier(asked), "solver": solver}
            settings |= {"memory_mib": self._limits.memory_mib, "file_mib": self._limits.file_mib}
            for name, text in ((files.SETTINGS, json.dumps(settings)), (files.ASKED, json.dumps(asdict(solve)))):
                with new_file(folder / name) as draft:
                    draft.write_text(text)
        except BaseException:
            self._begun()
            raise
        return solve

    def _earlier(self, asked: SolveRequest) -> str:
        """Folder of the plan from which a solve is to go on, "" for none. Raises Problem (404)."""
        if not asked.from_plan:
            return ""
        for plan in self._store.plans():
            if (plan.id, plan.path) == (asked.from_plan, asked.path):
                return str(self._root() / plan.folder / files.PLAN)
        raise Problem(404, "no-plan", f"there is no plan {asked.from_plan} of path {asked.path}")

    def launch(self, solve: Solve) -> bool:
        """Begin a prepared solve if the log says that it was asked for; otherwise its folder goes. Raises
        Unavailable."""
        with self._live.state() as state, self._lock:
            active = any(one.path == solve.path and not one.ended for one in self._solves.values())
            asked = state.plans.awaited(solve.path) == solve.checksum and not active
            if asked:
                self._solves[solve.id] = solve
        if asked:
            with suppress(OSError):  # no memory, or as many processes as there may be: the solve is lost
                self._processes[solve.id] = begin_process(self.folder_of(solve))
            self._watch(solve)
        else:
            shutil.rmtree(self.folder_of(solve), ignore_errors=True)
        self._begun()
        return asked

    def launch_later(self, solve: Solve) -> None:
        """``launch`` as soon as the log can be asked."""

        def wait() -> None:
            while not self._closing:
                try:
                    self.launch(solve)
                except Unavailable:
                    time.sleep(0.2)
                else:
                    return

        threading.Thread(target=wait, name="mast-opt solve", daemon=True).start()

    def stop(self, name: str) -> Solve:
        """Let a solve end soon with its incumbent. Raises Problem."""
        solve = self.one(name)
        with self._lock:
            if not solve.ended:
                solve.status = STOPPING
                process = self._processes.get(name)
                if process is not None and process.stdin is not None:
                    process.stdin.close()
        return solve

    def close(self) -> None:
        """Stop all solves, keep their incumbents, and write their ends to the log."""
        for solve in self.all():
            if not solve.ended:
                self.stop(solve.id)
        until = time.monotonic() + STOP_S
        for watcher in self._watchers:
            watcher.join(max(0.0, until - time.monotonic()))
        self._closing = True

    def planned(self, plan: StoredPlan) -> tuple[SlowPath, Planned]:
        """A plan and its instance from their files. Raises Problem where they are not what they were."""
        folder = self._root() / plan.folder
        try:
            if files.files_checksum(folder / files.PLAN) != plan.checksum:
                raise Problem(409, "plan-changed", f"the files of plan {plan.id} are not what the solve has written")
            problem = read(folder / files.INSTANCE)
            found = Planned(problem, read_plan(problem, folder / files.PLAN))
        except (OSError, MastOptError) as error:
            raise Problem(409, "plan-lost", f"plan {plan.id} cannot be read: {error}") from None
        return (DataPath(NetworkLimits()) if plan.path == data_path.NAME else ServersPath({})), found

    # --- threads ---

    def _root(self) -> Path:
        """Folder in which the service keeps solves and plans. Raises Problem (501) if it has none."""
        if self._folder is None:
            raise Problem(501, "no-folder", "this service has no folder for plans; start it with --plans")
        return self._folder

    def _tidy(self, root: Path) -> None:
        """Remove what old solves have left, but for plans that are carried out."""
        with self._live.state() as state:
            adopted = {state.plans.progress(path).plan for path in state.plans.paths()}
        for solve in [one for one in self.all() if one.ended][MOST_KEPT:]:
            if solve.id not in adopted:
                self._store.delete_plan(self._live.epoch, solve.id)
                shutil.rmtree(root / solve.id, ignore_errors=True)
                with self._lock:
                    self._solves.pop(solve.id, None)

    def _begun(self) -> None:
        """Count a prepared solve no longer among those that are about to begin."""
        with self._lock:
            self._beginning -= 1

    def _watch(self, solve: Solve) -> None:
        """Wait for the end of a solve in a thread of its own."""
        watcher = threading.Thread(target=self._wait, args=(solve,), name=f"mast-opt solve {solve.id}", daemon=True)
        self._watchers = [one for one in self._watchers if one.is_alive()] + [watcher]
        watcher.start()

    def _wait(self, solve: Solve) -> None:
        """Wait for the end of a process, and write it to the log."""
        process = self._processes.get(solve.id)
        if process is not None:
            process.wait()
            assert process.stdin is not None
            process.stdin.close()
        else:
            wait_for(self.folder_of(solve) / files.ALIVE)
        self._end(solve)
        with self._lock:
            self._processes.pop(solve.id, None)

    def _end(self, solve: Solve) -> None:
        """End a solve: read its outcome, keep its plan, and write its end to the log."""
        found = Solve(**asdict(solve))
        self._outcome(found)
        if found.plan:
            self._keep(found)
        outcome = found.status, found.plan, found.bound, found.objective
        if self._tell(ev.SolveEnded(solve.path, solve.checksum, *outcome)):
            with self._lock:
                solve.objective, solve.bound, solve.error = found.objective, found.bound, found.error
                solve.plan, solve.status = found.plan, found.status

    def _outcome(self, solve: Solve) -> None:
        """Fill in the outcome that the process of a solve has left."""
        folder, solve.plan = self.folder_of(solve), ""
        solve.status, solve.objective, solve.bound = files.LOST, None, None
        try:
            found = msgspec.json.decode((folder / files.OUTCOME).read_bytes(), type=Outcome)
            if found.status in {status.value for status in Status if status.has_solution}:
                if found.objective is None:
                    raise ValueError("it has a plan and no objective")
                files.files_checksum(folder / files.PLAN)
                solve.plan = solve.id
        except (OSError, ValueError) as error:
            solve.error = "" if isinstance(error, FileNotFoundError) else f"its outcome cannot be read: {error}"
            with suppress(OSError):
                solve.error += (folder / files.ERRORS).read_text(errors="replace")[-ERROR_CHARACTERS:]
            return
        solve.status, solve.objective, solve.bound = found.status, found.objective, found.bound
        solve.error = found.error

    def _keep(self, solve: Solve) -> None:
        """Write the plan's row, before the log refers to it."""
        assert solve.objective is not None
        checksum = files.files_checksum(self.folder_of(solve) / files.PLAN)
        row = StoredPlan(
            solve.id, solve.path, solve.id, checksum, solve.checksum, solve.status, solve.objective, solve.bound,
            self._live.now_ms(),
        )  # fmt: skip
        self._until_done(lambda: self._store.save_plan(self._live.epoch, row))

    def _tell(self, event: ev.SolveEnded) -> bool:
        """Have an event written, as often as it takes; False if the service ends before."""

        def respond(verdicts: Sequence[str]) -> tuple[int, str]:
            return 200, ""

        def once() -> None:
            done: Future[tuple[int, str]] = self._live.submit(Request((event,), respond))
            done.result()

        return self._until_done(once)

    def _until_done(self, do: Callable[[], object]) -> bool:
        """Try a write to the log or store as often as it takes; False if the service ends before."""
        while not self._closing:
            try:
                do()
            except (Unavailable, StoreError):
                time.sleep(0.2)
            else:
                return True
        return False
