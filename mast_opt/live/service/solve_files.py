"""Files of a solve: what the service and the process that solves leave for each other in a folder."""

import hashlib
from pathlib import Path

INSTANCE, SETTINGS, ASKED = "instance.json", "settings.json", "asked.json"
"""Files of a request: what is to be solved, how, and who asked."""
PLAN, OUTCOME, ERRORS = "plan", "outcome.json", "errors.txt"
"""Files that the process leaves, with the events of the solve."""
ALIVE = "alive"
"""Locked as long as the process lives."""
FAILED, LOST = "FAILED", "LOST"
"""Outcomes in addition to those of ``Status``: an error that the outcome states; and none at all."""


def files_checksum(folder: Path) -> str:
    """Checksum of the files in a solve's folder: equal for equal names and contents. Raises OSError."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
