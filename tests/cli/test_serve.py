"""``mast-opt serve``: what it refuses, and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Call

pytestmark = pytest.mark.second_tier


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["--listen", "0.0.0.0:1"], "there are no tokens"),
        (["--listen", "0.0.0.0:1", "--behind-proxy"], "there are no tokens"),
        (["--listen", "here"], "expected ADDRESS:PORT"),
        (["--listen", "127.0.0.1:99999"], "expected ADDRESS:PORT"),
        (["--tls-cert", "cert.pem"], "go together"),
        (["--new-token", "ada"], "expected some of submit, read, operate"),
        (["--new-token", "a b=read"], "expected a new one"),
        (["--fleet", "none"], "none"),
        (["--param", "promote_after_s=-1"], "promote_after_s is -1; expected at least 0"),
        ([], "--fleet"),
        (["--param", "reclaim"], "expected NAME=VALUE"),
        (["--param", "reclaims=any"], "there is no parameter reclaims"),
        (["--param", "reclaim=some"], "reclaim is 'some'; expected one of any, lower-priority, never"),
    ],
)
def test_what_cannot_be_served_is_refused(call: Call, tmp_path: Path, tokens: list[str], words: str) -> None:
    ended = call("serve", "--state", tmp_path / "s", *tokens)
    assert ended.code == 2
    assert words in ended.err


def test_other_states_are_refused(call: Call) -> None:
    ended = call("serve", "--state", "mysql://x")
    assert ended.code == 2
    assert "a folder or postgresql" in ended.err


def test_a_token_is_shown_once(call: Call, tmp_path: Path) -> None:
    ended = call("serve", "--state", tmp_path / "s", "--new-token", "ada=submit,read@research", "--json")
    token = ended.record["token"]
    stored = (tmp_path / "s" / "tokens.json").read_text()
    assert len(token) > 40
    assert token not in stored
    assert '"tenant": "research"' in stored
    assert (tmp_path / "s" / "tokens.json").stat().st_mode & 0o077 == 0
