"""A value that is allowed and was probably not meant."""

from dataclasses import dataclass

from mast_opt.core.wording import shown


@dataclass(frozen=True, slots=True)
class InputWarning:
    """A value that is allowed and was probably not meant, with its place and what was perhaps meant."""

    file: str
    """File, sheet or key that holds the value, relative to the input's root; as in ``Fault``."""
    message: str
    """Description of what is odd about the value."""
    row: int | None = None
    """Row as in ``Fault``; None where the warning is about a whole column or file."""
    column: str | None = None
    value: str | None = None
    """The value as it is written in the file."""
    suggestion: str = ""
    """Guess of what was meant, or advice; empty where nothing can be guessed."""
    count: int = 1
    """Number of cells that this stands for; the first of them is the one that is named."""

    def __str__(self) -> str:
        where = shown(self.file)
        if self.row is not None:
            where += f", row {self.row}"
        if self.column is not None:
            where += f", column {shown(self.column)}"
        found = "" if self.value is None else f" {self.value!r}:"
        more = f" (and {self.count - 1:,} more like it)" if self.count > 1 else ""
        hint = f"; {self.suggestion}" if self.suggestion else ""
        return f"{where}:{found} {self.message}{hint}{more}"
