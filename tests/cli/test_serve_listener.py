"""The socket that a service listens on."""

from __future__ import annotations

import socket

import pytest

from mast_opt.cli.serve_options import listening
from mast_opt.core.errors import UsageError


def test_answers_are_sent_at_once() -> None:
    with listening(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            accepted.sendall(b"x")
        assert client.recv(1) == b"x"


def test_a_port_in_use_is_said() -> None:
    with listening(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port}"):
            listening(("127.0.0.1", port))
