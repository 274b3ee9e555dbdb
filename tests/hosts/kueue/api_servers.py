"""Real API servers of Kubernetes for tests: one etcd, and as many kube-apiservers as clusters are wanted.

``build_apiserver.sh`` builds the program (Kubernetes 1.20, from Debian). What it does not have: rules in CEL, which
came with 1.25 (the stand-in for Kueue's controllers replays them), and MutatingAdmissionPolicy.
"""

from __future__ import annotations

import base64
import json
import lzma
import os
import secrets
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CRDS = Path(__file__).with_name("crds") / "kueue-crds.jsonl.xz"
JSON, APPLY, MERGE = "application/json", "application/apply-patch+yaml", "application/merge-patch+json"
START_S = 120.0
"""Time for a program to begin to answer, after which it has failed; a few seconds are usual."""


def crds() -> list[dict[str, Any]]:
    """Kueue's, for this API server: it allows no ``anyOf`` where a value is an integer or a string."""

    def adapted(part: Any) -> Any:
        if isinstance(part, dict):
            either = part.get("x-kubernetes-int-or-string")
            return {name: adapted(below) for name, below in part.items() if not (either and name == "anyOf")}
        return [adapted(below) for below in part] if isinstance(part, list) else part

    return [adapted(json.loads(line)) for line in lzma.decompress(CRDS.read_bytes()).splitlines()]


class Refusal(Exception):
    """An answer of an API server that is not a success."""

    def __init__(self, status: int, body: Mapping[str, Any]) -> None:
        super().__init__(f"{status}: {body.get('message')}")
        self.status, self.body = status, body


class ApiServer:
    """A running server, as its administrator uses it."""

    def __init__(self, name: str, port: int, folder: Path, certificates: Certificates, token: str) -> None:
        self.name, self.folder = name, folder
        self.url = f"https://127.0.0.1:{port}"
        self._certificates, self._token = certificates, token
        self._context = ssl.create_default_context(cafile=str(certificates.authority))

    def call(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> dict[str, Any]:
        """The answer to a request. Raises Refusal, OSError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content_type}
        asked = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(asked, context=self._context, timeout=30) as answer:
                text = answer.read()
        except urllib.error.HTTPError as error:
            text = error.read()
            found = json.loads(text) if text.startswith(b"{") else {"message": text.decode()}
            raise Refusal(error.code, found) from None
        return json.loads(text) if text.startswith(b"{") else {"text": text.decode()}

    def kubeconfig(self, user: str = "admin", **credentials: str) -> str:
        """The path of a new kubeconfig.

        Args:
            user: signed in by a certificate of its own.
            credentials: instead of that certificate.
        """
        if not credentials:
            certificate, key = self._certificates.of(user, "system:masters" if user == "admin" else "users")
            credentials = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
        path = self.folder / f"{user}-{secrets.token_hex(4)}.kubeconfig"
        path.write_text(kubeconfig({self.name: (self.url, self._certificates.authority, credentials)}))
        return str(path)

    def credentials(self, user: str) -> tuple[str, Path, dict[str, str]]:
        """URL, authority and credentials of a user, for ``kubeconfig``."""
        certificate, key = self._certificates.of(user, "system:masters" if user == "admin" else "users")
        return (
            self.url,
            self._certificates.authority,
            {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)},
        )

    def expired(self) -> str:
        """A kubeconfig whose certificate has expired."""
        certificate, key = self._certificates.of("admin", "system:masters", expired=True)
        credentials = {"client-certificate-data": encoded(certificate), "client-key-data": encoded(key)}
        return self.kubeconfig("expired", **credentials)

    def load_crds(self) -> None:
        """Make Kueue's kinds known, and wait until they are served."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for one in crds():
            self.call("POST", path, one)
        for one in crds():
            until(lambda one=one: _is_served(self, one))

    def load(self, manifest: Path) -> None:
        """Make the objects of a manifest, as ``kubectl apply`` would."""
        import yaml

        for one in yaml.safe_load_all(manifest.read_text()):
            self.create(one)

    def create(self, one: Mapping[str, Any]) -> dict[str, Any]:
        """Make an object, with its status."""
        meta = {name: part for name, part in one["metadata"].items() if name not in ("creationTimestamp", "generation")}
        path = collection(one["apiVersion"], one["kind"], meta.get("namespace", ""))
        made = self.call("POST", path, {**one, "metadata": meta})
        if one.get("status"):
            made = self.call("PATCH", f"{path}/{meta['name']}/status", {"status": one["status"]}, MERGE)
        return made


@contextmanager
def bound(server: ApiServer, manifest: Path, *names: str, user: str = "mast-opt") -> Iterator[None]:
    """A user with these roles of a manifest, in force; it and its roles are gone afterwards."""
    import yaml

    api, made = (
        "rbac.authorization.k8s.io",
        [one["metadata"]["name"] for one in yaml.safe_load_all(manifest.read_text())],
    )
    server.load(manifest)
    head = {"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding"}
    subjects = [{"kind": "User", "name": user, "apiGroup": api}]
    for name in names:
        role = {"apiGroup": api, "kind": "ClusterRole", "name": name}
        server.create({**head, "metadata": {"name": name}, "roleRef": role, "subjects": subjects})
    try:
        yield
    finally:
        for kind, gone in (("ClusterRoleBinding", list(names)), ("ClusterRole", made)):
            for one in gone:
                server.call("DELETE", f"{collection(f'{api}/v1', kind)}/{one}")


def _is_served(server: ApiServer, crd: Mapping[str, Any]) -> bool:
    names = crd["spec"]["names"]["plural"]
    try:
        return all(
            "items" in server.call("GET", f"/apis/{crd['spec']['group']}/{version['name']}/{names}")
            for version in crd["spec"]["versions"]
        )
    except Refusal:
        return False


def collection(api_version: str, kind: str, namespace: str = "") -> str:
    """The path of all objects of a kind."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    plural = f"{kind.lower()}s" if kind[-1] != "y" else f"{kind.lower()[:-1]}ies"
    return f"{root}/{f'namespaces/{namespace}/' if namespace else ''}{plural}"


def encoded(path: Path) -> str:
    """A file as kubeconfigs have it."""
    return base64.b64encode(path.read_bytes()).decode()


def kubeconfig(contexts: Mapping[str, tuple[str, Path, Mapping[str, str]]]) -> str:
    """A kubeconfig; context → URL, certificate authority, credentials. The first context is the current one."""
    import yaml

    found: str = yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": next(iter(contexts)),
            "clusters": [
                {"name": name, "cluster": {"server": url, "certificate-authority-data": encoded(authority)}}
                for name, (url, authority, _) in contexts.items()
            ],
            "users": [{"name": name, "user": dict(user)} for name, (_, _, user) in contexts.items()],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in contexts],
        }
    )
    return found


class Certificates:
    """An authority, and what it has signed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.authority = folder / "ca.crt"
        command = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=test-authority -keyout ca.key -out ca.crt"
        self._openssl(command.split())
        self.server = self._signed("server", "/CN=kube-apiserver", "subjectAltName=IP:127.0.0.1")

    def _openssl(self, arguments: list[str]) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)

    def _signed(self, name: str, subject: str, extension: str, *, days: int = 2) -> tuple[Path, Path]:
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        if not certificate.exists():
            (self._folder / f"{name}.ext").write_text(extension + "\n")
            new = f"req -newkey rsa:2048 -nodes -subj {subject} -keyout {name}.key -out {name}.csr"
            sign = f"x509 -req -in {name}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days {days} -extfile {name}.ext"
            self._openssl(new.split())
            self._openssl([*sign.split(), "-out", f"{name}.crt"])
        return certificate, key

    def of(self, user: str, group: str, *, expired: bool = False) -> tuple[Path, Path]:
        """Certificate and key of a user."""
        name = f"{user}-expired" if expired else user
        subject, extension = f"/O={group}/CN={user}", "extendedKeyUsage=clientAuth"
        return self._signed(name.replace(":", "-"), subject, extension, days=0 if expired else 2)


class Cluster:
    """One etcd, and API servers on it that know nothing of each other."""

    def __init__(self, folder: Path, program: Path, etcd: str) -> None:
        self._folder, self._program, self._etcd = folder, program, etcd
        self._certificates = Certificates(folder)
        (folder / "sa.key").write_bytes(self._certificates.server[1].read_bytes())
        self._token = secrets.token_hex(16)
        (folder / "tokens.csv").write_text(f'{self._token},admin,1,"system:masters"\n')
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ports: dict[str, int] = {}

    def start(self, name: str) -> ApiServer:
        """A server that answers; again with what it had, if it was there before."""
        port = self._ports.setdefault(name, free_port())
        certificate, key = self._certificates.server
        folder = self._folder
        arguments = {
            "etcd-servers": self._etcd,
            "etcd-prefix": f"/{name}",
            "bind-address": "127.0.0.1",
            "secure-port": port,
            "tls-cert-file": certificate,
            "tls-private-key-file": key,
            "client-ca-file": self._certificates.authority,
            "token-auth-file": folder / "tokens.csv",
            "authorization-mode": "RBAC",
            "service-account-key-file": folder / "sa.key",
            "service-account-signing-key-file": folder / "sa.key",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-cluster-ip-range": "10.0.0.0/24",
            "disable-admission-plugins": "ServiceAccount,TaintNodesByCondition",
            "endpoint-reconciler-type": "none",
            "watch-cache": "true",
        }
        with (folder / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [str(self._program), *(f"--{key}={value}" for key, value in arguments.items())],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=folder,
            )
        server = ApiServer(name, port, folder, self._certificates, self._token)
        until(lambda: self._answers(name, server))
        return server

    def _answers(self, name: str, server: ApiServer) -> bool:
        if self._processes[name].poll() is not None:
            raise RuntimeError((self._folder / f"{name}.log").read_text()[-3000:])
        try:
            return server.call("GET", "/readyz").get("text") == "ok"
        except (Refusal, OSError):
            return False

    def stop(self, name: str) -> None:
        """End a server, as a machine that loses its power does."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def close(self) -> None:
        """End all servers."""
        for name in list(self._processes):
            self.stop(name)


@contextmanager
def cluster(folder: Path, program: Path) -> Iterator[Cluster]:
    """A new etcd with nothing in it; it and all servers end with the context."""
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    arguments = {
        "data-dir": folder / "etcd",
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": f"default={peer}",
    }
    with (folder / "etcd.log").open("wb") as log:
        process = subprocess.Popen(
            ["etcd", *(f"--{key}={value}" for key, value in arguments.items()), "--unsafe-no-fsync"],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "ETCD_UNSUPPORTED_ARCH": os.uname().machine},
        )
    servers = None
    try:
        servers = Cluster(folder, program, client)
        yield servers
    finally:
        if servers is not None:
            servers.close()
        process.kill()
        process.wait()


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def until(true: Any, seconds: float = START_S) -> None:
    """Wait for something to come about."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise AssertionError("it has not come about")
        time.sleep(0.1)
