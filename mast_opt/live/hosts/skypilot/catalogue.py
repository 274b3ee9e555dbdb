"""Prices of SkyPilot's own catalogue (extra ``skypilot``)."""

import re
from functools import lru_cache
from typing import Any

from mast_opt.core.errors import BackendUnavailable, InputError
from mast_opt.live.hosts.skypilot.advice import Prices

EGRESS_GB = 1000
"""Volume whose mean price stands for every volume: SkyPilot's own price falls as the data grows."""


def sky_package() -> Any:  # noqa: ANN401 - SkyPilot has no types
    """The package. Raises BackendUnavailable if it is missing."""
    try:
        import sky
    except ImportError as error:
        raise BackendUnavailable(
            "SkyPilot is not installed; install it with: pip install 'mast-opt[skypilot]'"
        ) from error
    return sky


def sky_prices() -> Prices:
    """Prices of SkyPilot. Asking for one raises InputError where a catalogue can neither be read nor downloaded.

    Raises:
        BackendUnavailable: SkyPilot is missing.
    """
    sky = sky_package()

    @lru_cache
    def offers(cloud: str, gpu_type: str, count: int) -> list[Any]:
        try:
            found = sky.catalog.list_accelerators(
                name_filter=f"^{re.escape(gpu_type)}$", quantity_filter=count, clouds=cloud, all_regions=True
            )
        except Exception as error:  # what a download raises differs by cloud
            raise InputError(f"SkyPilot's catalogue of {cloud} cannot be read: {error}") from error
        return [one for rows in found.values() for one in rows]

    def node(place: str, gpu_type: str, count: int, spot: bool) -> float | None:
        cloud, _, region = place.partition("/")
        here = (one for one in offers(cloud, gpu_type, count) if str(one.region) == region)
        usd = [float(one.spot_price if spot else one.price) for one in here]
        return min((one for one in usd if one >= 0), default=None)  # a price that is not known is no number

    def egress(cloud: str) -> float:
        try:
            return float(sky.CLOUD_REGISTRY.from_str(cloud).get_egress_cost(EGRESS_GB)) / EGRESS_GB
        except ValueError as error:
            raise InputError(f"SkyPilot has no cloud called {cloud}") from error

    return Prices(node, egress)
