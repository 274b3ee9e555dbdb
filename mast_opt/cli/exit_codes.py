"""The exit codes of every command."""

import enum

from mast_opt.core.errors import BackendUnavailable, InputError, Interrupted, PluginError, SizeLimitExceeded, UsageError


class Exit(enum.IntEnum):
    """Exit codes of commands."""

    OK = 0
    """Done; for ``solve``, a verified plan."""
    UNEXPECTED = 1
    """A fault of mast-opt or of a solver."""
    USAGE = 2
    """An option, a file, a missing solver or a plug-in that the user can repair."""
    INFEASIBLE = 3
    """Proven: no plan keeps every limit."""
    NO_PLAN = 4
    """No plan was found within the limit."""
    VIOLATIONS = 5
    """``verify`` found that the plan breaks a limit or misstates its objective."""
    INTERRUPTED = 130
    """Ctrl-C; the best plan found until then has still been written."""


def exit_for(error: BaseException) -> Exit:
    """The exit code for an exception that ends a command."""
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return Exit.INTERRUPTED
    repairable = (UsageError, InputError, PluginError, BackendUnavailable, SizeLimitExceeded, OSError)
    return Exit.USAGE if isinstance(error, repairable) else Exit.UNEXPECTED
