"""The admin policy in SkyPilot's process: ``admin_policy: mast_opt.live.hosts.skypilot.policy.MastOptPolicy``.

The folder of tables is ``MAST_OPT_SKYPILOT`` of the environment; it is read for every request.
"""

import os
from pathlib import Path
from typing import Any

from mast_opt.core.errors import UsageError
from mast_opt.live.hosts.skypilot.advice import read_tables
from mast_opt.live.hosts.skypilot.catalogue import sky_package, sky_prices
from mast_opt.live.hosts.skypilot.rest import answered

sky = sky_package()
FOLDER = "MAST_OPT_SKYPILOT"


class MastOptPolicy(sky.AdminPolicy):  # type: ignore[misc, name-defined]
    """Policy that turns a task into ranked infra."""

    @classmethod
    def validate_and_mutate(cls, user_request: Any) -> Any:  # noqa: ANN401 - SkyPilot has no types
        """The request with its task's places. Raises InputError or UsageError, with which SkyPilot rejects it."""
        if FOLDER not in os.environ:
            raise UsageError(f"expected the folder of tables in the environment as {FOLDER}")
        task = answered(
            user_request.task.to_yaml_config(),
            user_request.request_name.value,
            read_tables(Path(os.environ[FOLDER])),
            sky_prices(),
        )
        return sky.MutatedUserRequest(sky.Task.from_yaml_config(task), user_request.skypilot_config)
