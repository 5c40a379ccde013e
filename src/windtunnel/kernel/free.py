"""`Free`: what is free in a cluster, as every rule and source of the kernel sees it.

Three kinds follow it: pools, nodes with whole GPUs, nodes with devices, cores and memory. A *kind*
of job is its demand class (`windtunnel.sim.problem`): jobs of one kind are interchangeable here.
"""

from __future__ import annotations

from typing import Any

import cython
import numpy

from windtunnel.kernel.marks import compiled
from windtunnel.kernel.pairs import Pairs
from windtunnel.kernel.quota_limits import QuotaLimits
from windtunnel.kernel.raised import Raised
from windtunnel.kernel.rows import Rows


@cython.cclass
class Free:
    """What is free, changed by ``take`` and ``give``, ``withhold`` and ``restore`` alone.

    Attributes:
        total: free GPU units that are not withheld (of pools: less what is withheld).
        version: rises whenever more may be free than before: a refusal holds until then.
        changes: rises with every change: a choice of nodes holds until then.
        draws: jobs taken so far, of a state whose placement draws random numbers by it.
        place: where the last ``fit`` would put a job.
        raised: what a placement in Python has raised; None = there is none.
        nodes: nodes, or pools.
        quotas: what queues use of theirs, as `windtunnel.kernel.state` counts it; of runs with
            quotas.
    """

    nodes: cython.int
    total: cython.longlong
    draws: cython.longlong
    version: cython.longlong
    changes: cython.longlong
    place: Pairs
    raised: Raised
    has_quotas: cython.bint
    quotas: QuotaLimits

    @compiled
    def fit(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits now, and write where into ``place``."""
        return False

    @compiled
    def fit_again(self, kind: cython.int, where: Pairs) -> cython.bint:
        """Return whether a job fits the nodes of a place, as many tasks on each; see `fit`.

        Where devices are modelled it may get others of theirs; elsewhere it is not asked.
        """
        return False

    @compiled
    def take(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Take what a job of a kind gets on these pairs; they are free, or the state overdraws."""
        self.move(kind, pairs, begin, end, -1)
        self.draws += 1
        self.changes += 1

    @compiled
    def give(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.void:
        """Give back what ``take`` took."""
        self.move(kind, pairs, begin, end, 1)
        self.version += 1
        self.changes += 1

    @compiled
    def move(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        sign: cython.int,
    ) -> cython.void:  # fmt: skip
        """Let be free (1) what a job of a kind has on these pairs, or not any more (-1)."""

    @compiled
    def is_free(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong
    ) -> cython.bint:
        """Return whether these pairs could be taken, all together, by a job of a kind."""
        return False

    @compiled
    def withhold(self, node: cython.int, group: cython.int, units: cython.longlong) -> cython.void:
        """Hide what a node has free (of a pool: so many units) from all but the jobs of a group.

        Group 0 is nobody's; units below 0 are all that a pool has. A node may be withheld several
        times, and is hidden until each is undone; jobs may still run there, and what they give back
        stays hidden. May be called while the state is open.
        """

    @compiled
    def restore(self, node: cython.int, group: cython.int, units: cython.longlong) -> cython.void:
        """Undo one `withhold` of the same node, group and units."""

    @compiled
    def open_for(self, access: cython.int) -> cython.bint:
        """Show what is withheld for the groups of an access set alone; return if anything is.

        Until `close` the state is only searched. Then ``fit`` looks at the shown nodes first, and
        at all others if the job fits on none of those. Access set 0 has no groups.
        """
        return False

    @compiled
    def close(self) -> cython.void:
        """Undo `open_for`."""

    @compiled
    def copy_from(self, other: Free) -> cython.void:
        """Become equal to another state of the same cluster."""
        if self.has_quotas:
            self.quotas.copy_from(other.quotas)
        self.total = other.total
        self.draws = other.draws
        self.version += 1
        self.changes += 1

    @compiled
    def free_units(self, node: cython.int) -> cython.longlong:
        """Return the GPU units of a node that nobody holds, withheld or not."""
        return 0

    @compiled
    def granted(self, kind: cython.int, grant: cython.longlong) -> cython.longlong:
        """Return the GPU units of a grant to a job of a kind."""
        return grant

    @compiled
    def holder(self, node: cython.int) -> cython.int:
        """Return whom a node is withheld for: its oldest hold's group, 0 nobody, -1 no hold."""
        return -1

    @compiled
    def allows(self, kind: cython.int, node: cython.int) -> cython.bint:
        """Return whether jobs of a kind may use a node at all: its GPU type is acceptable."""
        return True

    @compiled
    def fits(self, kind: cython.int, pairs: Pairs) -> cython.bint:
        """Return whether a policy's own choice is well formed, allowed, free and sums up.

        The numbers may be any; what the open access set shows is looked at, and nothing changes.
        """
        return False

    @compiled
    def down(self) -> cython.longlong:
        """Return the GPU units that nobody holds and nobody may use: withheld for group 0."""
        return 0

    # As a row of numbers: plans keep many states, and of a plan's states what they have in common.

    @compiled
    def width(self) -> cython.int:
        """Return how many columns a node has in a row."""
        return 1

    @compiled
    def store(self, rows: Rows, row: cython.int) -> cython.void:
        """Write what nobody holds as a row; what is withheld of nodes stays in it.

        A job fits in what two states have in common if it fits in the row that has the
        lesser number of each column of theirs.
        """

    @compiled
    def load(self, rows: Rows, row: cython.int) -> cython.void:
        """Become what a row says. Of states that withhold nothing, and for searches alone."""

    @compiled
    def footprint(
        self, kind: cython.int, pairs: Pairs, begin: cython.longlong, end: cython.longlong,
        into: Pairs,
    ) -> cython.void:  # fmt: skip
        """Append what a job of a kind on these pairs takes of a row: (column, amount) pairs.

        Each column stands there once.
        """

    @compiled
    def is_single(self, kind: cython.int) -> cython.bint:
        """Return whether a job of a kind fits exactly where one node's columns suffice (`need`)."""
        return False

    @compiled
    def need(self, kind: cython.int, column: cython.int) -> cython.longlong:
        """Return how much a job of a single kind needs of its node's column (0 or 1)."""
        return 0

    @compiled
    def idle_need(self, kind: cython.int) -> cython.longlong:
        """Return how many columns must be as in an empty row for a job of a kind, at least."""
        return 0

    @compiled
    def wants_idle_alone(self, kind: cython.int) -> cython.bint:
        """Return whether nothing but nodes that are empty is of use to a job of a kind."""
        return False

    @compiled
    def closings(self, node: cython.int, access: cython.int) -> cython.int:
        """Return how many holds of a node are for groups that an access set does not have."""
        return 0

    def limit(self, quotas: QuotaLimits) -> None:
        """Let quotas count what is taken and given here; copies have books of their own."""
        self.has_quotas, self.quotas = True, quotas

    def twin(self) -> Free:
        """Return an equal state of the same cluster."""
        twin: Free = self._twin()
        if self.has_quotas:
            twin.limit(self.quotas.twin())
        return twin

    def _twin(self) -> Free:
        """Return an equal state without quotas."""
        raise NotImplementedError

    # For policies and sources in Python.

    def num_kinds(self) -> int:
        """Return how many kinds of jobs there are."""
        raise NotImplementedError

    def num_nodes(self) -> int:
        """Return how many nodes (or pools) there are."""
        return int(self.nodes)

    def add_kind(self, demand: Any) -> int:
        """Return the number of a new kind, for this state and its twins: a demand bound further."""
        raise NotImplementedError

    def free_by_node(self) -> numpy.ndarray:
        """Return what is free on each node as policies see it, GPU units, Int64 array (nodes,)."""
        raise NotImplementedError

    def _check_kind(self, kind: int) -> None:
        if not 0 <= kind < self.num_kinds():
            raise IndexError(f"kind {kind} of {self.num_kinds()}")

    def fit_pairs(self, kind: int, access: int = 0) -> list[tuple[int, int]] | None:
        """Return where a job would go as (node, grant) pairs, None if it does not fit.

        Args:
            kind: its kind.
            access: its access set; 0 = as the state is open now.
        """
        self._check_kind(kind)
        if access:
            self.open_for(access)
        found = self.fit(kind)
        if access:
            self.close()
        if not found:
            return None
        return list(zip(self.place.nodes().tolist(), self.place.grants().tolist(), strict=True))

    def fits_pairs(self, kind: int, where: Any, access: int = 0) -> bool:
        """Return whether a policy's own choice is well formed, allowed, free and sums up."""
        self._check_kind(kind)
        pairs: Pairs | None = pairs_of(where)
        if pairs is None:
            return False
        if access:
            self.open_for(access)
        found = bool(self.fits(kind, pairs))
        if access:
            self.close()
        return found

    def take_pairs(self, kind: int, where: Any) -> None:
        """Take what a job of a kind gets on these pairs; they are free, or the state overdraws."""
        pairs: Pairs = self._checked(kind, where)
        self.take(kind, pairs, 0, pairs.count)

    def give_pairs(self, kind: int, where: Any) -> None:
        """Give back what `take_pairs` took."""
        pairs: Pairs = self._checked(kind, where)
        self.give(kind, pairs, 0, pairs.count)

    def _checked(self, kind: int, where: Any) -> Pairs:
        self._check_kind(kind)
        pairs: Pairs | None = pairs_of(where)
        if pairs is None or not all(0 <= node < self.num_nodes() for node, _ in where):
            raise IndexError(f"{where}: there are {self.num_nodes()} nodes")
        return pairs

    def _check_node(self, node: int) -> None:
        if not 0 <= node < self.num_nodes():
            raise IndexError(f"node {node} of {self.num_nodes()}")

    def withhold_node(self, node: int, group: int = 0, units: int = -1) -> None:
        """Hide what a node has free from all but a group's jobs; see `withhold`. -1 units = all."""
        self._check_node(node)
        self.withhold(node, group, units)

    def restore_node(self, node: int, group: int = 0, units: int = -1) -> None:
        """Undo one `withhold_node` of the same node, group and units."""
        self._check_node(node)
        self.restore(node, group, units)

    def open(self, access: int) -> bool:
        """Show what is withheld for an access set alone; see `open_for`."""
        return bool(self.open_for(access))

    def shut(self) -> None:
        """Undo `open`."""
        self.close()

    def become(self, other: Free) -> None:
        """Become equal to another state of the same cluster."""
        self.copy_from(other)

    def units_down(self) -> int:
        """Return the GPU units that nobody holds and nobody may use."""
        return int(self.down())

    def units_on(self, node: int) -> int:
        """Return the GPU units of a node that nobody holds, withheld or not."""
        self._check_node(node)
        return int(self.free_units(node))

    def held_for(self, node: int) -> int:
        """Return whom a node is withheld for; see `holder`."""
        self._check_node(node)
        return int(self.holder(node))

    def counts(self) -> tuple[int, int, int, int]:
        """Return total, version, changes and draws."""
        return self.total, self.version, self.changes, self.draws


def pairs_of(where: Any) -> Pairs | None:
    """Return (node, grant) pairs as `Pairs`; None where a number is out of all range."""
    pairs: Pairs = Pairs(max(len(where), 1))
    for node, grant in where:
        if not (-(2**31) <= node < 2**31 and -(2**63) <= grant < 2**63):
            return None
        pairs.add(node, grant)
    return pairs
