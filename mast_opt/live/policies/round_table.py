"""Jobs that take turns in rounds, as columns: what each takes and does on each GPU type, and what it has had."""

from collections.abc import Container, Sequence

import numpy as np

from mast_opt.core.arrays import BoolArray, FloatArray, IntArray


class RoundTable:
    """Jobs of the rounds, in the order of submission. J counts jobs, G types.

    Args:
        types: how many GPU types there are.
    """

    def __init__(self, types: int) -> None:
        self.names: list[str] = []
        self.at: dict[str, int] = {}
        """Job → its position."""
        self.rate: FloatArray = np.zeros((0, types))
        """[J, G] part of the reference speed; 0 where the job cannot run."""
        self.need: IntArray = np.zeros((0, types), np.int64)
        """[J, G] milli-GPUs of the gang."""
        self.share: FloatArray = np.zeros((0, types))
        """[J, G] part of the time that it is to have."""
        self.has_share: BoolArray = np.zeros(0, np.bool_)
        """[J] whether it was there when the shares were computed."""
        self.received: FloatArray = np.zeros((0, types))
        """[J, G] ms that it has had since then, and half a round."""
        self.deficit: FloatArray = np.zeros((0, types))
        """[J, G] ms that it was to have and has not had, up to then."""
        self.regions: dict[str, tuple[str, ...]] = {}
        """Job → where it may run, as far as that was looked up."""

    def __len__(self) -> int:
        return len(self.names)

    def keep(self, known: Container[str]) -> None:
        """Drop the jobs that take turns in rounds but that are not among these."""
        kept = np.array([name in known for name in self.names], np.bool_)
        if kept.all():
            return
        for name in self.names:
            if name not in known:
                self.regions.pop(name, None)
        self.names = [name for name, stays in zip(self.names, kept.tolist(), strict=True) if stays]
        self.at = {name: at for at, name in enumerate(self.names)}
        for column in ("rate", "need", "share", "has_share", "received", "deficit"):
            setattr(self, column, getattr(self, column)[kept])

    def add(self, names: Sequence[str], rate: FloatArray, need: IntArray, received: float) -> None:
        """Add jobs that have had nothing but ``received`` on each type."""
        for name in names:
            self.at[name] = len(self.names)
            self.names.append(name)
        none = np.zeros(rate.shape)
        self.rate, self.need = np.concatenate([self.rate, rate]), np.concatenate([self.need, need])
        self.share, self.deficit = np.concatenate([self.share, none]), np.concatenate([self.deficit, none])
        self.received = np.concatenate([self.received, none + received])
        self.has_share = np.concatenate([self.has_share, np.zeros(len(names), np.bool_)])
