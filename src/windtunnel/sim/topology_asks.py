"""What jobs ask of the tree in which they are placed: their own words, or a default by size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from windtunnel.cluster.topology.words import request_of
from windtunnel.errors import SchemaError, SpecError, Violation, quote
from windtunnel.schema import source_of

if TYPE_CHECKING:
    import pyarrow as pa

    from windtunnel.cluster.topology.node_tree import NodeTree
    from windtunnel.cluster.topology.request import TopologyRequest
    from windtunnel.sim.jobs import Jobs


def passed_over(table: pa.Table, placement: str | None) -> list[str]:
    """Return what to note where nobody looks at what jobs ask of levels: a sentence, or none."""
    if "topology" not in table.column_names:
        return []
    words = table["topology"].to_pylist()
    asking = sum(bool(word) and word != "unconstrained" for word in words)
    if not asking:
        return []
    jobs = f"{asking:,} job{'s ask' if asking > 1 else ' asks'} for levels (column topology)"
    by = "the placement" if placement is None else f"placement {quote(placement)}"
    return [f"{jobs}; {by} did not look at them: --placement tree does."]


class Asks:
    """Pods and requests of jobs.

    Args:
        tree: where they are placed.
        default: what jobs ask that say nothing: words, or ``WORDS@GPUS`` joined by commas, of which
            the first counts whose number of GPUs the job has at least; None = nothing.
        in_pieces: jobs come in pieces of unlike size, which whoever lays them out knows: there are
            no pods of one size, and so no slices of them.

    Attributes:
        requests: the distinct requests; the first is none.
        notes: what was assumed, one sentence each.

    Raises:
        SpecError: the words are not understood.
    """

    def __init__(
        self, tree: NodeTree, default: str | None = None, *, in_pieces: bool = False
    ) -> None:
        self.tree, self.in_pieces = tree, in_pieces
        self.requests: list[TopologyRequest | None] = [None]
        self.notes: list[str] = []
        self._numbers: dict[TopologyRequest | None, int] = {None: 0}
        #: Pairs of the fewest GPUs and a request's number.
        self._defaults = [self._default(word) for word in default.split(",")] if default else []

    def _default(self, word: str) -> tuple[int, int]:
        words, at, least = word.partition("@")
        if at and not (least.isdecimal() and len(least) < 10):  # noqa: PLR2004 - a number of GPUs
            message = f"found {quote(word)}; expected WORDS or WORDS@GPUS, as in slice=rack/4@32."
            raise SpecError("topology_request", message)
        return (int(least) if at else 0), self._number(words)

    def _number(self, words: str) -> int:
        """Return the number of a request in words.

        Raises:
            SpecError: they are not understood, or ask for slices of jobs that have none.
        """
        request = request_of(words, self.tree.levels)
        if self.in_pieces and request.layers:
            message = (
                f"found {quote(words)}: slices are of pods of one size, and the pieces of an "
                "elastic job's options are of unlike size."
            )
            raise SpecError("topology", message)
        if request not in self._numbers:
            self._numbers[request] = len(self.requests)
            self.requests.append(request)
        return self._numbers[request]

    def of(self, jobs: Jobs, rows: np.ndarray, gpus: np.ndarray, pods: np.ndarray) -> np.ndarray:
        """Return the number of each job's request.

        Raises:
            SchemaError: a job's own words are wrong, or do not suit its pods.
        """
        numbers = self._by_size(gpus, pods)
        if "topology" in jobs.table.column_names:
            words = jobs.topology[rows]
            for place in np.flatnonzero(words.astype(bool)).tolist():
                numbers[place] = self._own(jobs, int(rows[place]), int(pods[place]))
        return numbers

    def _by_size(self, gpus: np.ndarray, pods: np.ndarray) -> np.ndarray:
        """Return the number of the default that counts for each job; slices must divide its pods.

        A job that slices do not divide asks for nothing; notes tell of how many.
        """
        numbers = np.zeros(len(gpus), np.int64)
        if not self._defaults:
            return numbers
        missed = 0
        for place, (held, count) in enumerate(zip(gpus.tolist(), pods.tolist(), strict=True)):
            number = next((number for least, number in self._defaults if held >= least), 0)
            request = self.requests[number]
            if request is not None and any(count % layer.size for layer in request.layers):
                missed += 1
            else:
                numbers[place] = number
        if missed:
            self.notes.append(
                f"{missed:,} jobs come in pods that the slices asked for do not divide; these jobs "
                "ask for nothing."
            )
        return numbers

    def _own(self, jobs: Jobs, row: int, pods: int) -> int:
        """Return the number of a job's own request.

        Raises:
            SchemaError: it is wrong, or does not suit its pods.
        """
        try:
            number = self._number(str(jobs.topology[row]))
            self.tree.ask(self.requests[number], pods)
        except SpecError as error:
            rule = f"words that suit the levels; job {quote(jobs.job_id[row])}: {error}"
            raise SchemaError(
                source_of(jobs.table), [Violation("topology", rule, 1, row + 1, unit="row")]
            ) from error
        return number
