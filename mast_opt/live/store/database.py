"""Interface of a database under a store."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]


class Database(Protocol):
    """One connection. Every method raises StoreError where the database fails, and CorruptStore where it says that its
    files are damaged. Statements have ``?`` where a value goes."""

    def transaction(self) -> AbstractContextManager[None]:
        """All statements inside take effect together, durably, when the block ends; none if it raises. No other writer
        comes between them."""
        ...

    def execute(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Execute an SQL statement, and return its rows."""
        ...

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Add rows to a table of the store's database."""
        ...

    def has_table(self, name: str) -> bool:
        """Whether the store's database has a table of this name."""
        ...

    def hold_lock(self) -> bool:
        """Try to hold the log's lock that ends with this process; True if this process holds it, already or now."""
        ...

    def confirm(self, seq: int) -> None:
        """Note down elsewhere that the log has reached this event, where the database could lose its end unnoticed."""
        ...

    def confirmed(self) -> int:
        """The event that was confirmed last; 0 if none was."""
        ...

    def left_aside(self) -> list[str]:
        """Files of the database that were damaged when it was opened, and what was done about them."""
        ...

    def damage(self) -> str:
        """Damage of the database's files, after a look at all of them; empty if there is none."""
        ...

    def types(self) -> dict[str, str]:
        """Names of the SQL types BYTES and BIGINT in this database."""
        ...

    def close(self) -> None:
        """Close the connection to the database."""
        ...
