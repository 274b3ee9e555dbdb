"""No file names a host that packages come from: the machine's own settings say which one to use."""

from __future__ import annotations

import re

from tests.files import ROOT, project_files

HOSTS = re.compile(
    r"(?:deb|security|archive|snapshot|ftp[\w.]*)\.debian\.org|(?:archive|security|ports)\.ubuntu\.com"
    r"|(?:test\.)?pypi\.org/simple|files\.pythonhosted\.org|conda\.anaconda\.org|registry\.(?:npmjs|yarnpkg)\.\w+"
    r"|proxy\.golang\.org|(?:index|static)\.crates\.io|(?:docker|ghcr|quay)\.io/|registry-1\.docker"
    r"|https?://[\w.-]*mirror[\w.-]*|--(?:extra-)?index-url|--find-links"
)


def test_hosts_of_packages_are_recognised() -> None:
    for host in ("http://deb.debian.org/debian", "docker.io/library/python", "https://mirror.example.org/debian"):
        assert HOSTS.search(host)
    assert not HOSTS.search("https://pypi.org/project/highspy")


def test_no_file_names_a_host_of_packages() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in project_files()
        if path.name != "test_package_hosts.py"
        for match in HOSTS.finditer(path.read_bytes().decode("utf-8", "replace"))
    ]
    assert not found
