"""Which batch sizes are worth learning about: exploration with pruning (Zeus, NSDI'23).

A round walks from the default downwards, then from the next larger size upwards; a run that fails
ends its direction. Sizes that reached the target are the candidates of the next round, which starts
at the cheapest of this one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

#: Rounds of the paper: afterwards every survivor has been seen twice.
ROUNDS = 2


class PruningExplorer:
    """Walks over batch sizes, one result at a time.

    Args:
        batch_sizes: candidates, in any order.
        default: where the first round starts; one of them.
        rounds: how many rounds.

    Attributes:
        survivors: ascending; of the last round that ended, before that all candidates.
        done: whether the last round has ended.
    """

    def __init__(self, batch_sizes: Sequence[int], default: int, rounds: int = ROUNDS) -> None:
        self.survivors = sorted(batch_sizes)
        self.done = False
        self._default = default
        self._walk = self._rounds(rounds)
        self._next: int | None = None
        self._asked = False
        self._advance(None)

    @property
    def awaited(self) -> int | None:
        """The batch size whose result is awaited; None = none is."""
        return self._next if self._asked else None

    def ask(self) -> int | None:
        """Return the batch size to try; None = exploration is over.

        Until its result is observed, the same one is returned.
        """
        self._asked = not self.done
        return self._next

    def tell(self, cost: float, *, reached: bool) -> None:
        """Go on with the awaited batch size's result.

        Args:
            cost: of the run, J.
            reached: whether it reached the target.
        """
        self._asked = False
        self._advance((cost, reached))

    def _advance(self, result: tuple[float, bool] | None) -> None:
        try:
            self._next = next(self._walk) if result is None else self._walk.send(result)
        except StopIteration:
            self._next, self.done = None, True

    def _rounds(self, rounds: int) -> Generator[int, tuple[float, bool], None]:
        for _ in range(rounds):
            start, lowest = self._default, math.inf
            down = [size for size in reversed(self.survivors) if size <= start]
            up = [size for size in self.survivors if size > start]
            reached_it: list[int] = []
            for direction in (down, up):
                for size in direction:
                    cost, reached = yield size
                    if not reached:
                        break
                    reached_it.append(size)
                    if cost < lowest:
                        lowest, self._default = cost, size
            self.survivors = sorted(reached_it)
