"""Tables of a mapping file from a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path

import pytest

import mast_opt
from mast_opt.core.errors import SourceError
from tests.platforms import needs
from tests.store.postgres_server import postgres_server

MAPPING = """
kind = "server-assignment"
[sources]
fleet = {{ postgresql = "{url}" }}
[tables.servers]
database = "fleet"
query = "{query}"
[tables.reservations]
database = "fleet"
query = "select name as reservation, rru::float8 as rru, 'none' as buffer from teams order by name"
[tables.values]
database = "fleet"
query = "select name as reservation, 'gpu' as type, 1 as rru from teams order by name"
"""
SERVERS = (
    "select host as server, 'gpu' as type, rack, rack as switchboard, 'dc' as datacenter, team as reservation, "
    "team is not null as in_use from hosts order by host"
)


@needs("PostgreSQL")
def test_a_server_answers_the_queries_and_refuses_to_be_changed(tmp_path: Path) -> None:
    import psycopg

    with postgres_server() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("create table hosts (host text, rack text, team text)")
            connection.execute("create table teams (name text, rru numeric)")
            connection.execute("insert into hosts values ('h1', 'r1', 'ads'), ('h2', 'r2', null), ('h3', 'r2', null)")
            connection.execute("insert into teams values ('ads', 2), ('search', 1)")
        mapping = tmp_path / "mapping.toml"
        mapping.write_text(MAPPING.format(url=server.url, query=SERVERS))
        problem = mast_opt.import_instance("tables", mapping)
        solution = mast_opt.solve(problem)
        assert solution.verdict is not None
        assert solution.verdict.metrics["shortfall_rru"] == 0
        for query, words in (("select host from host", "host"), ("delete from hosts returning host", "read-only")):
            mapping.write_text(MAPPING.format(url=server.url, query=query))
            with pytest.raises(SourceError, match=words):
                mast_opt.import_instance("tables", mapping)
        with psycopg.connect(server.url) as connection:
            assert connection.execute("select count(*) from hosts").fetchone() == (3,)
