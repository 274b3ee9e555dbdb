"""``mast-opt drain``."""

import json as json_format
import os
import time
import urllib.error
import urllib.request
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer
from mast_opt.cli.options import Json, TheRun, at_least
from mast_opt.core.errors import InputError
from mast_opt.core.wording import shown

TOKEN = "MAST_OPT_TOKEN"
PATIENCE_S = 30.0
LOOK_S = 2.0


def command(
    of: Annotated[Literal["server", "rack", "cluster"], Parameter(help="What is drained.")],
    name: Annotated[str, Parameter(help="Its name.")],
    /,
    *,
    url: Annotated[str, Parameter(help="The service.")] = "http://127.0.0.1:8765",
    stop_after: Annotated[
        float | None,
        at_least(
            0,
            "Seconds after which what still runs there is stopped, and waits for another place; unless given it runs "
            "to its end.",
            "--stop-after-s",
        ),
    ] = None,
    back: Annotated[bool, Parameter(help="Take jobs again.", negative=())] = False,
    wait: Annotated[bool, Parameter(help="Wait until nothing runs there.", negative=())] = False,
    why: Annotated[str, Parameter(help="Reason, for the log.")] = "",
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Close servers of a running service to new jobs, let them run empty, or open them again.

    The token of an operator is read from MAST_OPT_TOKEN.

        mast-opt drain server gpu-17 --wait
        mast-opt drain rack r3 --stop-after-s 600 --why "power work"
        mast-opt drain rack r3 --back
    """
    asked = {"of": of, "name": name, "state": "open" if back else "closed", "stop_after_s": stop_after, "why": why}
    found = _ask(url, asked)
    servers = set(found["servers"])
    while wait and not back and found["waits_for"]:
        run.say(f"{len(found['waits_for']):,} jobs are still there.")
        time.sleep(LOOK_S)
        there = {job for one in _ask(url)["servers"] if one["server"] in servers for job in one["waits_for"]}
        found["waits_for"] = sorted(there)
    run.record.update(kind="drain", **found)
    words = "take jobs again" if back else f"take no job; {len(found['waits_for']):,} are still there"
    return Answer(Exit.OK, lambda console: console.print(f"{len(servers):,} servers of {of} {shown(name)} {words}."))


def _ask(url: str, body: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - any JSON
    """Answer of the service. Raises InputError with what it says."""
    headers = {"Content-Type": "application/json"}
    if os.environ.get(TOKEN):
        headers["Authorization"] = f"Bearer {os.environ[TOKEN]}"
    data = None if body is None else json_format.dumps(body).encode()
    if not url.startswith(("http://", "https://")):
        raise InputError(f"--url {url!r}; expected http://… or https://…")
    asked = urllib.request.Request(f"{url.rstrip('/')}/v1/drains", data, headers)
    try:
        with urllib.request.urlopen(asked, timeout=PATIENCE_S) as answer:
            return json_format.load(answer)
    except urllib.error.HTTPError as error:
        try:
            detail = json_format.load(error)["detail"]
        except (ValueError, KeyError, TypeError):
            detail = error.reason
        raise InputError(f"{url} answers {error.code}: {shown(str(detail))}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{url} cannot be asked: {error}") from error
