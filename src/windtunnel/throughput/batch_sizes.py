"""When the batch size of a training job changes: static, Accordion and GNS jobs of Shockwave's.

Accordion (Agarwal et al., MLSys'21) trains with small batches in critical regimes and with the
largest outside; GNS (McCandlish et al., 2018) doubles the batch as the gradient noise grows. What
is written here are the regimes that Shockwave's authors profiled.

Zheng et al., NSDI'23; uw-mad-dash/shockwave, ``scheduler/scheduler.py`` and ``scheduler/utils.py``.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from windtunnel.errors import SpecError

#: Samples of the data set that one epoch goes through.
DATASET_SIZES: dict[str, int] = {
    "ResNet-18": 50_000,
    "ResNet-50": 100_000,
    "Transformer": 10_000,
    "LM": 59_675,
    "Recommendation": 117_907,
    "CycleGAN": 6_287,
    "A3C": 4,
}
#: How a job's batch size may change.
MODES: tuple[str, ...] = ("static", "accordion", "gns")
_LARGEST = {
    "ResNet-18": 256,
    "ResNet-50": 128,
    "Transformer": 128,
    "LM": 80,
    "Recommendation": 8192,
}
_SMALLEST = {"ResNet-18": 16, "ResNet-50": 16, "Transformer": 16, "LM": 5, "Recommendation": 512}
#: Of GNS jobs, by model and GPUs, then first batch size: the epochs at which it has doubled.
_DOUBLINGS: dict[tuple[str, int], dict[int, tuple[int, ...]]] = {
    ("ResNet-18", 1): {16: (31, 41, 51, 71), 32: (21, 31, 51), 64: (11, 31), 128: (11,)},
    ("ResNet-18", 2): {16: (21, 31, 91, 111), 32: (11, 21, 41), 64: (21, 41), 128: (41,)},
    ("ResNet-18", 4): {16: (11, 21, 81, 91), 32: (21, 31, 61), 64: (11, 61), 128: (11,)},
    ("ResNet-50", 1): {64: (101,)},
    ("ResNet-50", 2): {32: (101, 111), 64: (81,)},
    ("ResNet-50", 4): {32: (131, 221), 64: (191,)},
    ("LM", 1): {5: (31, 41, 61, 71), 10: (11, 21, 41), 20: (11, 41), 40: (11,)},
    ("LM", 2): {5: (31, 51, 61, 71), 10: (11, 31, 41), 20: (31, 41), 40: (11,)},
    ("LM", 4): {5: (11, 31, 71, 91), 10: (11, 31, 61), 20: (11, 61), 40: (61,)},
    ("Recommendation", 1): {
        512: (21, 41, 71, 91),
        1024: (21, 51, 91),
        2048: (21, 41),
        4096: (41,),
    },
}
#: Epoch from which a *planned* ResNet-50 has no critical regimes.
_RESNET_50_PLANNED = 600
#: Part of the training before which a *planned* Accordion job never leaves its first batch size.
_EARLY = 0.3


@dataclass(frozen=True)
class Kind:
    """What decides how a job's batch size changes.

    Attributes:
        model: one of `DATASET_SIZES`.
        batch_size: at first.
        gpus: of the gang.
        mode: one of `MODES`.
    """

    model: str
    batch_size: int
    gpus: int
    mode: str

    def __post_init__(self) -> None:
        if self.model not in DATASET_SIZES:
            raise SpecError.unknown("model", self.model, DATASET_SIZES)
        if self.mode not in MODES:
            raise SpecError.unknown("mode", self.mode, MODES)

    @property
    def largest(self) -> int:
        """The model's largest batch size; the first one of models whose size never grows."""
        return _LARGEST.get(self.model, self.batch_size)

    @property
    def smallest(self) -> int:
        """The model's smallest batch size."""
        return _SMALLEST.get(self.model, self.batch_size)

    def steps_per_epoch(self, batch_size: int) -> int:
        """Return the mini-batches of one epoch."""
        return math.ceil(DATASET_SIZES[self.model] / batch_size)

    def is_critical(self, epoch: int) -> bool:
        """Return whether an Accordion job trains with its first batch size, in the simulator."""
        if self.model == "LM":
            return epoch < 10  # noqa: PLR2004 - the regimes are the authors' numbers
        if self.model == "Recommendation":
            return epoch < {512: 30, 1024: 30, 2048: 40}.get(self.batch_size, 10)
        if self.model == "ResNet-50":
            return epoch % 30 < 10  # noqa: PLR2004
        if self.model == "ResNet-18":
            early = 20 if self.batch_size == 256 else 10  # noqa: PLR2004
            return epoch < early or 150 <= epoch < 160 or 250 <= epoch < 260  # noqa: PLR2004
        return True

    def is_critical_as_planned(self, epoch: int, epochs: int) -> bool:
        """Return the same as the published profile has it, which is another rule."""
        if epoch <= _EARLY * epochs:
            return True
        if self.model == "ResNet-50" and epoch >= _RESNET_50_PLANNED:
            return False
        if self.is_critical(epoch):
            return True
        if self.model == "Recommendation":
            return 60 <= epoch < 70 or 80 <= epoch < 90  # noqa: PLR2004
        return False

    def doubled(self, epoch: int, epochs: int) -> int:
        """Return the batch size of a GNS job in an epoch of a training of ``epochs``."""
        known = _DOUBLINGS.get((self.model, self.gpus), {}).get(self.batch_size, ())
        if not known or epochs <= known[0]:
            return self.batch_size
        doublings: int = bisect_right(known, epoch)
        return min(self.batch_size << doublings, self.largest)

    def planned(self, epochs: int) -> list[int]:
        """Return the batch size planned for each epoch; of the published profile.

        From the second doubling on, a GNS job's very last epoch has the first size (published).
        """
        if self.mode == "accordion":
            return [
                self.batch_size if self.is_critical_as_planned(e, epochs) else self.largest
                for e in range(epochs)
            ]
        if self.mode == "static":
            return [self.batch_size] * epochs
        sizes = [self.doubled(e, epochs) for e in range(epochs)]
        known = _DOUBLINGS.get((self.model, self.gpus), {}).get(self.batch_size, ())
        if len(known) > 1 and epochs > known[1]:
            sizes[-1] = self.batch_size
        return sizes


def batch_size_request(kind: Kind, batch_size: int, epoch: int) -> int | None:
    """Return the batch size that a job asks for in the simulator; None = the one it has.

    Args:
        kind: the job.
        batch_size: its present one.
        epoch: in which it is, counted at the present size.
    """
    if kind.mode == "accordion":
        critical = kind.is_critical(epoch)
        if batch_size == kind.batch_size and not critical and batch_size != kind.largest:
            return kind.largest
        if batch_size != kind.batch_size and critical and batch_size != kind.smallest:
            return kind.batch_size
    if kind.mode == "gns" and batch_size != kind.largest:
        ahead = max(760, epoch + 2)  # the published pattern is that long
        if max(kind.doubled(at, ahead) for at in (epoch, epoch + 1)) > batch_size:
            return 2 * batch_size
    return None
