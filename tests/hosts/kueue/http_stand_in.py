"""The stand-in behind HTTP, as an API server answers lightkube; and a kubeconfig for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from mast_opt.live.hosts.kueue.api import PLURALS, ApiError
from mast_opt.live.hosts.kueue.patches import Patch
from tests.hosts.kueue.stand_in import StandIn

KINDS = {plural: kind for kind, plural in PLURALS.items()} | {"jobs": "Job"}
TOKEN = "secret"


@contextmanager
def served(stand_in: StandIn, folder: Path, *, crds: bool = True, token: str = TOKEN) -> Iterator[str]:
    """The path of a kubeconfig that leads to the stand-in."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def answer(self, status: int, body: Any) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def refuse(self, status: int, message: str) -> None:
            self.answer(status, {"kind": "Status", "status": "Failure", "code": status, "message": message})

        def parts(self) -> tuple[list[str], dict[str, list[str]]]:
            split = urlsplit(self.path)
            return split.path.strip("/").split("/"), parse_qs(split.query)

        def allowed(self) -> bool:
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self.refuse(401, "Unauthorized")
                return False
            return True

        def do_GET(self) -> None:
            if not self.allowed():
                return
            parts, query = self.parts()
            kind = KINDS.get(parts[-1])
            if kind is None or parts[1] != "kueue.x-k8s.io" or not crds:
                self.refuse(404, "the server could not find the requested resource")
            elif "watch" in query:
                (first, *_), meta = stand_in.list(kind), {"resourceVersion": "5"}
                line = json.dumps({"type": "MODIFIED", "object": {**first, "metadata": first["metadata"] | meta}})
                self.send_response(200)
                self.end_headers()
                self.wfile.write(line.encode() + b"\n")
            else:
                items = [{name: part for name, part in one.items() if name != "kind"} for one in stand_in.list(kind)]
                self.answer(200, {"kind": f"{kind}List", "metadata": {"resourceVersion": "1"}, "items": items})

        def do_PATCH(self) -> None:
            if not self.allowed():
                return
            parts, query = self.parts()
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status = parts[-1] == "status"
            kind, name = (KINDS[parts[-3]], parts[-2]) if status else (KINDS[parts[-2]], parts[-1])
            namespace = parts[parts.index("namespaces") + 1] if "namespaces" in parts else ""
            force = query.get("force", ["false"])[0] == "true"
            manager = query["fieldManager"][0]
            try:
                content = self.headers["Content-Type"]
                stand_in.patch(Patch(kind, namespace, name, content, manager, force, body, status))
            except ApiError as error:
                self.refuse(error.status, str(error))
            else:
                self.answer(200, stand_in.objects[kind, namespace, name])

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            stand_in.events.append((body["involvedObject"]["name"], body["reason"], body["message"]))
            self.answer(201, body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "one",
        "clusters": [{"name": "one", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "me", "user": {"token": token}}],
        "contexts": [{"name": "one", "context": {"cluster": "one", "user": "me"}}],
    }
    path = folder / f"kubeconfig-{server.server_port}"
    path.write_text(yaml.safe_dump(config))
    try:
        yield str(path)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
