"""The command line: ``mast-opt COMMAND …``. Exit codes are in ``mast_opt.cli.exit_codes``."""

import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from mast_opt.cli.app import command_line
from mast_opt.cli.exit_codes import Exit, exit_for
from mast_opt.cli.invocation import Run
from mast_opt.core.errors import MastOptError

DEBUG = "MAST_OPT_DEBUG"
"""Environment variable: set to 1, unexpected errors show where they come from."""


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no exception leaves here.

    Without tokens it runs what the process was started with, and does not wait for a solver that was interrupted in
    vain, as the interpreter would: then it ends the process itself.
    """
    code = _ended(Run(sys.argv[1:] if tokens is None else tokens))
    if tokens is None and code is Exit.INTERRUPTED and _solver_left_behind():
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                with suppress(OSError):
                    stream.flush()
        os._exit(code)
    return code


def _solver_left_behind() -> bool:
    """Whether a solver that was asked to stop still runs in this process of the command line."""
    from mast_opt.problems.backends.base import solver_left_behind

    return solver_left_behind()


def _ended(run: Run) -> Exit:
    """Run the command of a command line, and end it with its result or its error."""
    try:
        command = command_line(run)
        if command is None:
            return Exit.OK
        with run.stdout:
            answer = command()
        return run.finish(answer)
    except BaseException as error:
        if os.environ.get(DEBUG, "") not in ("", "0"):
            traceback.print_exc()
        run.record["error_code"] = error.code if isinstance(error, MastOptError) else None
        run.record["faults"] = [asdict(fault) for fault in getattr(error, "faults", ())]
        return run.fail(_words(error, run), exit_for(error))
    finally:
        run.close()


def _words(error: BaseException, run: Run) -> str:
    """Message to the user: what is wrong, and what to do next."""
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MastOptError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return "out of memory; try a heuristic solver (see: mast-opt backends) or a machine with more memory"
    again = shlex.join(["mast-opt", *run.tokens])
    return (
        f"unexpected {type(error).__name__}: {error}\n"
        f"This is a fault in mast-opt, not in your input. Please report it with the output of:\n  {DEBUG}=1 {again}"
    )
