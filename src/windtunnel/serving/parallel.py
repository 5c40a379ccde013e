"""How one group of GPUs runs the models it holds: tensor and pipeline degree."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from windtunnel.errors import SpecError, quote

if TYPE_CHECKING:
    from collections.abc import Sequence


class Parallel(NamedTuple):
    """A parallel configuration, as AlpaServe (OSDI'23, section 2) writes it.

    Attributes:
        dp: replicas inside the group; always 1, since a replica is a group of its own.
        op: intra-operator (tensor) degree, GPUs that share one stage.
        pp: inter-operator (pipeline) degree, number of stages.
    """

    dp: int = 1
    op: int = 1
    pp: int = 1

    @property
    def gpus(self) -> int:
        """Number of GPUs of the group."""
        return self.dp * self.op * self.pp

    @property
    def name(self) -> str:
        """The configuration as text.

        >>> Parallel(1, 2, 4).name
        '(1,2,4)'
        """
        return f"({self.dp},{self.op},{self.pp})"


def as_parallel(value: Sequence[int], path: str = "$.parallel") -> Parallel:
    """Return three whole numbers as a configuration.

    Args:
        value: dp, op and pp.
        path: where it stands, for the error.

    Raises:
        SpecError: it is not three whole numbers >= 1, or dp is not 1.
    """
    numbers = list(value) if isinstance(value, list | tuple) else []
    right = len(numbers) == 3 and all(  # noqa: PLR2004 - dp, op, pp
        isinstance(number, int) and not isinstance(number, bool) and number >= 1
        for number in numbers
    )
    if not right:
        raise SpecError(path, f"found {quote(value)}; expected [dp, op, pp], whole numbers >= 1.")
    if numbers[0] != 1:
        raise SpecError(
            path, f"found dp = {numbers[0]}; expected 1: write replicas as groups of their own."
        )
    return Parallel(*numbers)
