"""The exceptions of mast-opt.

    MastOptError
    ├── UsageError               an option or argument that cannot be honoured
    │   ├── FormulationTooLarge  the program of a problem takes more memory than there is
    │   ├── NotRunning           a job that the fleet does not have, or has no more
    │   └── UnsupportedOption    a backend or solver lacks what was asked of it
    ├── InputError               a file that cannot be used
    │   ├── InstanceError        an instance with faults, all of them listed
    │   ├── PlanError            a plan with faults, all of them listed
    │   ├── SourceError          public data that an importer cannot use, all faults listed
    │   └── SuiteError           a benchmark suite with faults, all of them listed
    ├── BackendError             a solver library failed
    │   ├── BackendUnavailable   its package is missing or has no licence
    │   └── SizeLimitExceeded    the problem is over the size its licence allows
    ├── PluginError              a plug-in of another package cannot be loaded, or failed
    ├── Interrupted              cancelled before there was anything to return
    ├── StaleBid                 a bid that the fleet has changed since
    └── VerificationError        the verifier and the solver truly disagree
        └── Contradiction        two exact solvers prove what cannot both be true

Each has a ``code`` that programs can rely on, and its fields in ``details``. Infeasible and out of time are statuses
(``mast_opt.core.solve_result.Status``), not exceptions.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from mast_opt.core.wording import counted, shown


class MastOptError(Exception):
    """Root of every exception that mast-opt raises on purpose."""

    code: ClassVar[str] = "error"
    """Identifier of what happened, which does not change; the message may."""

    def details(self) -> dict[str, Any]:
        """Code, message and fields, ready for JSON."""
        return {"code": self.code, "message": str(self), **self._fields()}

    def _fields(self) -> dict[str, Any]:
        """The fields of this class of error."""
        return {}


class UsageError(MastOptError):
    """An argument or option that cannot be honoured; the message says what is accepted."""

    code = "usage"

    def __init__(self, message: str, *, argument: str | None = None, expected: str | None = None) -> None:
        """``argument``: its name; ``expected``: what would have been accepted. None where it is about more."""
        super().__init__(message)
        self.argument = argument
        self.expected = expected

    def _fields(self) -> dict[str, Any]:
        """The argument of a UsageError and what was expected, for JSON."""
        return {"argument": self.argument, "expected": self.expected}


class UnsupportedOption(UsageError):
    """A solver was asked for something it cannot do (options are never ignored silently)."""

    code = "unsupported-option"


class NotRunning(UsageError):
    """A job that does not run in the fleet: it never did, or has ended, was stopped for another one or lost its server.
    Nothing was changed."""

    code = "not-running"

    def __init__(self, job: str) -> None:
        """``job``: its name."""
        super().__init__(f"no job called {job} runs here")
        self.job = job

    def _fields(self) -> dict[str, Any]:
        """The job of the error that it does not run, for JSON."""
        return {**super()._fields(), "job": self.job}


class FormulationTooLarge(UsageError):
    """The program that a MIP solver needs takes more memory than there is; nothing of it was built."""

    code = "formulation-too-large"


class PluginError(MastOptError):
    """A plug-in of another package that cannot be used, or failed; the message names it and its package."""

    code = "plugin"


class InputError(MastOptError):
    """A file or folder that cannot be used."""

    code = "input"


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with an input, precise enough to be repaired without searching."""

    file: str
    """File, sheet or key that holds the value, relative to the input's root."""
    expected: str
    """Description of a value that would have been right."""
    row: int | None = None
    """1-based data row (the header does not count), or the row of an Excel sheet as Excel numbers it; None when the
    fault is not in one row."""
    column: str | None = None
    value: str | None = None
    """The offending value as it was written; None when something is missing."""
    count: int = 1
    """Number of cells that this stands for; more than 1 when they are counted instead of listed one by one."""

    def __str__(self) -> str:
        where = shown(self.file)
        if self.row is not None:
            where += f", row {self.row}"
        if self.column is not None:
            where += f", column {shown(self.column)}"
        found = "" if self.value is None else f" found {self.value!r};"
        if self.count > 1:
            found = f" {self.count:,} more;"
        return f"{where}:{found} expected {shown(self.expected)}"


def _grouped(faults: Iterable[Fault]) -> list[str]:
    """The faults in words; of those that differ in nothing but the row, the first with the number of the others."""
    alike: dict[tuple[object, ...], list[Fault]] = {}
    for fault in faults:
        alike.setdefault((fault.file, fault.column, fault.value, fault.expected), []).append(fault)
    found = []
    for first, *others in alike.values():
        more = f" (and {counted(len(others), 'more row')} like it)" if others else ""
        found.append(f"{first}{more}")
    return found


class _Faulty(InputError):
    noun = "input"

    def __init__(self, faults: Iterable[Fault], cause: str = "") -> None:
        """``cause``: a line that explains them, to be read first."""
        self.faults = tuple(faults)
        self.cause = cause
        lines = "\n".join(f"  {words}" for words in _grouped(self.faults))
        count = sum(fault.count for fault in self.faults)
        found = f"{counted(count, 'fault')} in the {self.noun}:\n{lines}"
        super().__init__(f"{shown(cause)}\n{found}" if cause else found)

    def __reduce__(self) -> "tuple[type[_Faulty], tuple[tuple[Fault, ...], str]]":
        return type(self), (self.faults, self.cause)

    def _fields(self) -> dict[str, Any]:
        """The faults of an error about an input, for JSON."""
        return {"faults": [asdict(fault) for fault in self.faults]}


class InstanceError(_Faulty):
    """An instance with faults; ``faults`` lists every one that was found."""

    code = "instance"
    noun = "instance"


class PluginWarning(UserWarning):
    """A plug-in of another package that is not used, because its name is one of mast-opt's own."""


class InstanceWarning(UserWarning):
    """A value that is allowed and was probably not meant; see ``from_tables``, ``simulate`` and ``validate``."""


class PlanError(_Faulty):
    """A plan file with faults; ``faults`` lists every one that was found."""

    code = "plan"
    noun = "plan"


class SourceError(_Faulty):
    """Public data that an importer cannot use; ``faults`` lists everything wrong with its files."""

    code = "source"
    noun = "source data"


class SuiteError(_Faulty):
    """A benchmark suite with faults; ``faults`` lists every one that was found."""

    code = "suite"
    noun = "suite"


class BackendError(MastOptError):
    """A solver library reported a failure; the message carries the solver's own words."""

    code = "backend"


class BackendUnavailable(BackendError):
    """The solver's package or licence is missing; the message says how to install it."""

    code = "backend-unavailable"


class SizeLimitExceeded(BackendError):
    """The problem is larger than the installed licence allows; names the size and an alternative."""

    code = "size-limit-exceeded"


class VerificationError(MastOptError):
    """The verifier rejects what the solver calls a solution, beyond solver tolerance."""

    code = "verification"


class Contradiction(VerificationError):
    """Two exact solvers prove what cannot both be true; ``solution`` has the better verified plan, and no proof."""

    code = "contradiction"

    def __init__(self, message: str, solution: Any) -> None:  # noqa: ANN401 - solving is above
        """``solution``: a ``Solution``; its ``cross_check`` says what the second solver claims."""
        super().__init__(message)
        self.solution = solution


class Interrupted(MastOptError):
    """``cancel`` was set before there was anything to return."""

    code = "interrupted"


class StaleBid(MastOptError):
    """A bid for an older state of the fleet; ask for a new one. Nothing was changed."""

    code = "stale-bid"
