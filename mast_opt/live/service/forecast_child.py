"""Starts of waiting jobs, predicted by a process of its own, so that nobody who asks the service waits for it.

    MAST_OPT_STATE=FOLDER python -m mast_opt.live.service.forecast_child NOW_MS PARAMS

It reads the last snapshot and the events since, and writes (job, by, expected) as JSON. Parameters of
``mast`` are JSON too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from typing import IO

from mast_opt.live.policies.mast import Mast
from mast_opt.live.policies.mast_params import MastParams
from mast_opt.live.service.restart import opening_of
from mast_opt.live.service.snapshot_child import STATE, begin_child, opened, stay_behind
from mast_opt.live.simulation.forecast import PastRuns, predicted
from mast_opt.live.store.recovery import recovered

PAST = 200_000
"""Last events by which run times are judged."""


def begin(state: str, params: MastParams, now_ms: int, out: IO[bytes]) -> subprocess.Popen[bytes]:
    """Begin the process that predicts starts, for the log in a folder or at a URL."""
    return begin_child(__name__, (str(now_ms), json.dumps(asdict(params))), state, out)


def main() -> None:
    """Run the process that predicts starts from the service's store."""
    stay_behind()
    store = opened(os.environ[STATE])
    try:
        state, past = recovered(store, opening_of(store)).state, PastRuns()
        for stored in store.read(max(store.first_seq() - 1, state.seq - PAST)):
            past.take(stored.at_ms, stored.event)
    finally:
        store.close()
    state.now_ms = max(state.now_ms, int(sys.argv[1]))
    params = MastParams(**json.loads(sys.argv[2]))
    found = predicted(state, lambda: Mast(params), past)
    json.dump([(name, one.by_ms, one.expected_ms) for name, one in found.items()], sys.stdout)


if __name__ == "__main__":
    main()
