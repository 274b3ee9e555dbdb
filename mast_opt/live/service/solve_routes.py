"""Handlers of the routes under /v1/solves and /v1/plans."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from starlette.requests import Request as Asked
from starlette.responses import Response

from mast_opt.core.solve_result import relative_gap
from mast_opt.live.hosts.protocol import Can
from mast_opt.live.loop import events as ev
from mast_opt.live.loop.snapshot import Snapshot
from mast_opt.live.loop.state import State
from mast_opt.live.service.access import Access
from mast_opt.live.service.handlers import Endpoint, Handlers, json_of
from mast_opt.live.service.live import Live
from mast_opt.live.service.one_solve import Solve
from mast_opt.live.service.problems import Problem
from mast_opt.live.service.requests import SolveRequest, decoded, name_in
from mast_opt.live.service.solves import Solves
from mast_opt.live.service.streams import ALIVE, Streams, last_seen, message
from mast_opt.live.service.turn_requests import EXISTS, Respond
from mast_opt.live.store.records import StoredPlan
from mast_opt.live.store.sql_store import SqlStore
from mast_opt.planner.io.events import EVENTS

LOOK_S = 0.5
"""Seconds between two looks at the incumbents of a solve."""
_NEEDED = {ev.COPY: Can.COPY, ev.DROP: Can.COPY, ev.MOVE: Can.MOVE_SERVERS}
HOST, PEOPLE = "host", "people"


class SolveApi(Handlers):
    """The handlers of solves and plans."""

    def __init__(self, live: Live, store: SqlStore, access: Access, streams: Streams, solves: Solves) -> None:
        super().__init__(live, store, access, streams)
        self.solves = solves

    # --- solves ---

    @Endpoint(
        "POST",
        "/v1/solves",
        "Solve for a plan of data or servers as they are now",
        SolveRequest,
        done=(202,),
        errors=(409, 501),
        key=True,
    )
    async def begin(self, asked: Asked) -> Response:
        """Begin a solve that a client asks for."""
        who = self.who(asked, "operate")
        body = await self.body(asked)
        request = decoded(body, SolveRequest)
        answer = await self.answered_before(asked, who, body)
        if answer is None:
            solve = await asyncio.to_thread(self.solves.prepare, request, who.name)

            def respond(verdicts: Sequence[str]) -> tuple[int, str]:
                if verdicts[0] == EXISTS:
                    return 409, Problem(409, "awaited", f"path {request.path} waits for a plan already").body()
                return 202, json.dumps({"solve": solve.id})

            try:
                answer = await self.submitted(asked, who, body, (ev.SolveAsked(solve.path, solve.checksum),), respond)
                await asyncio.to_thread(self.solves.launch, solve)
            except BaseException:  # the log will say whether it was asked for
                self.solves.launch_later(solve)
                raise
        if answer.status_code == 202:
            answer.headers["Location"] = f"/v1/solves/{json.loads(bytes(answer.body))['solve']}"
        return answer

    @Endpoint("GET", "/v1/solves", "Solves, the newest first")
    def list(self, asked: Asked) -> Response:
        """Answer with every solve, the newest first."""
        self.who(asked, "read")
        return json_of({"solves": [solve_object(solve) for solve in self.solves.all()]})

    @Endpoint("GET", "/v1/solves/{solve}", "A solve")
    def one(self, asked: Asked) -> Response:
        """Answer with one solve."""
        self.who(asked, "read")
        return json_of(solve_object(self.solves.one(name_in(asked.path_params, "solve"))))

    @Endpoint("DELETE", "/v1/solves/{solve}", "Stop a solve; its incumbent is kept", done=(200, 202))
    def stop(self, asked: Asked) -> Response:
        """Let a solve end soon; it keeps its incumbent."""
        self.who(asked, "operate")
        solve = self.solves.stop(name_in(asked.path_params, "solve"))
        return json_of(solve_object(solve), 202 if not solve.ended else 200)

    @Endpoint("GET", "/v1/solves/{solve}/events", "Incumbents as they come (server-sent events)")
    async def stream(self, asked: Asked) -> Response:
        """Stream a solve's incumbents and bounds as they come (server-sent events); the last message is the solve as it
        has ended.
        """
        who = self.who(asked, "read")
        solve = self.solves.one(name_in(asked.path_params, "solve"))
        return self.streamed(who, self._incumbents(solve, last_seen(asked, 0)))

    async def _incumbents(self, solve: Solve, after: int) -> AsyncIterator[str]:
        """Lines of a stream of a solve's incumbents and bounds, and of its end."""
        path, number, looks = self.solves.folder_of(solve) / EVENTS, 0, 0
        while True:
            ended = solve.ended
            lines = await asyncio.to_thread(path.read_text, errors="replace") if path.exists() else ""
            whole = lines.splitlines(keepends=True)
            for number, line in enumerate(whole, start=1):
                if number > after and line.endswith("\n"):
                    with suppress(ValueError):  # a line that the disk has damaged
                        yield message(json.loads(line), number)
                    after = number
            if ended:
                yield message(solve_object(solve), event="end")
                return
            looks += 1
            if not await self.streams.pause(asyncio.Event(), LOOK_S) and looks % 30 == 0:
                yield ALIVE
            if self.streams.ended:
                return

    # --- plans ---

    @Endpoint("GET", "/v1/plans", "Plans, the newest first")
    def plans(self, asked: Asked) -> Response:
        """Answer with every plan, the newest first, and how far those have come that are carried out."""
        self.who(asked, "read")
        found = self.store.plans()
        with self.live.state() as state:
            return json_of({"plans": [self._plan_object(state, plan) for plan in found]})

    @Endpoint("GET", "/v1/plans/{plan}", "A plan, and the steps that are left")
    def plan(self, asked: Asked) -> Response:
        """Answer with one plan; of one that is carried out, the steps that are left."""
        self.who(asked, "read")
        plan = self._known(name_in(asked.path_params, "plan"))
        with self.live.state() as state:
            found = self._plan_object(state, plan)
            progress = state.plans.progress(plan.path)
        if progress.plan == plan.id:
            steps = [("waiting", step) for step in progress.waiting] + [
                ("under way", step) for step in progress.under_way
            ]
            found["steps"] = [{"state": word, **self._step_object(step)} for word, step in steps]
        return json_of(found)

    @Endpoint("POST", "/v1/plans/{plan}/adopt", "Carry out a plan from now on", errors=(409, 501), key=True)
    async def adopt(self, asked: Asked) -> Response:
        """Adopt a plan: it is carried out instead of what is left of the one before it."""
        who = self.who(asked, "operate")
        plan = await asyncio.to_thread(self._known, name_in(asked.path_params, "plan"))

        path, planned = await asyncio.to_thread(self.solves.planned, plan)

        def prepare(state: State) -> tuple[tuple[ev.Event, ...], Respond]:
            found = path.carry_out(Snapshot(state, ()), planned)
            listed = [self._step_object(step) for step in found.steps]
            answer = json.dumps({"plan": plan.id, "steps": listed, "dropped": found.dropped})
            event = ev.PlanAdopted(plan.path, plan.id, found.dropped, found.steps, found.ratios)
            return (event,), lambda _: (200, answer)

        return await self.submitted(asked, who, b"", prepare=prepare)

    def _known(self, name: str) -> StoredPlan:
        """The stored plan with this identifier. Raises Problem (404)."""
        for plan in self.store.plans():
            if plan.id == name:
                return plan
        raise Problem(404, "no-plan", f"there is no plan {name}")

    def _plan_object(self, state: State, plan: StoredPlan) -> dict[str, Any]:
        """JSON of a stored plan, with its progress if it is carried out."""
        progress = state.plans.progress(plan.path)
        found: dict[str, Any] = {
            "plan": plan.id,
            "path": plan.path,
            "status": plan.status,
            "objective": plan.objective,
            "bound": plan.bound,
            "gap": relative_gap(plan.objective, plan.bound),
            "at_ms": plan.at_ms,
            "adopted": progress.plan == plan.id,
        }
        if progress.plan == plan.id:
            found["progress"] = {
                "steps": progress.steps,
                "waiting": len(progress.waiting),
                "under_way": len(progress.under_way),
                "dropped": progress.dropped,
            }
        return found

    def _step_object(self, step: ev.PlanStep) -> dict[str, Any]:
        """JSON of a step of a plan, and whether the host or people carry it out."""
        return {
            "does": step.does,
            "name": step.name,
            "source": step.source,
            "target": step.target,
            "first_wave": step.first_wave,
            "by": HOST if _NEEDED[step.does] in self.live.host.can else PEOPLE,
        }


def solve_object(solve: Solve) -> dict[str, Any]:
    """JSON of a solve that a client has asked for."""
    return {
        "solve": solve.id,
        "path": solve.path,
        "solver": solve.solver,
        "by": solve.by,
        "asked_ms": solve.asked_ms,
        "status": solve.status,
        "objective": solve.objective,
        "bound": solve.bound,
        "gap": relative_gap(solve.objective, solve.bound),
        "plan": solve.plan or None,
        "error": solve.error,
    }
