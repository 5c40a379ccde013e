"""Runs through an executor, none lost where a worker dies, none stopping the others.

Our own workers and Ray's tell whose worker died: that run flies again, and counts as failed after
`MOST_DEATHS` times. An executor that is given may break as a whole instead and not tell which run
it was: all runs in flight then fly again one at a time, until each is known.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from typing import TYPE_CHECKING, Any

from windtunnel.study.grid.flying import fly_order
from windtunnel.study.grid.measure import failed
from windtunnel.study.worker_processes import WorkerDiedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future

    import pyarrow as pa

    from windtunnel.study.grid.executor import StudyExecutor
    from windtunnel.study.grid.flying import Order

#: A run whose worker died so often is failed.
MOST_DEATHS = 3
#: Runs handed out at a time for each worker, so that none waits for the next.
_AHEAD = 2


def fly_all(
    executor: StudyExecutor,
    orders: Sequence[Order],
    on_row: Callable[[pa.Table, float], None],
    call: Callable[[Order], tuple[pa.Table, float]] = fly_order,
) -> None:
    """Fly runs, in no certain order.

    Args:
        executor: who flies them.
        orders: the runs.
        on_row: called in this thread with each run's row and seconds, once a run.
        call: what a worker does.

    Raises:
        WindtunnelError: a worker cannot fly at all, or the executor cannot be replaced.
    """
    if orders:
        _Flight(executor, orders, on_row, call).run()


class _Flight:
    """The runs of one call of `fly_all`, by what is known of them."""

    def __init__(
        self,
        executor: StudyExecutor,
        orders: Sequence[Order],
        on_row: Callable[[pa.Table, float], None],
        call: Callable[[Order], tuple[pa.Table, float]],
    ) -> None:
        self._executor = executor
        self._waiting = deque(orders)
        self._suspects: deque[Order] = deque()
        self._flying: dict[Future[Any], Order] = {}
        self._deaths: dict[str, int] = {}
        self._on_row = on_row
        self._call = call

    def run(self) -> None:
        """Fly until every run has a row."""
        try:
            while self._waiting or self._suspects or self._flying:
                self._submit()
                done, _ = wait(self._flying, return_when=FIRST_COMPLETED)
                self._land(done)
        finally:
            for future in self._flying:
                future.cancel()

    def _submit(self) -> None:
        """Hand out runs; one at a time while any is suspect."""
        source = self._suspects or self._waiting
        most = 1 if self._suspects else _AHEAD * self._executor.workers
        while source and len(self._flying) < most:
            order = source.popleft()
            try:
                self._flying[self._executor.executor.submit(self._call, order)] = order
            except BrokenExecutor:  # a worker died while none of our calls was in it
                source.appendleft(order)
                self._broken()
                return

    def _land(self, done: set[Future[Any]]) -> None:
        """Take finished runs in."""
        broken = False
        for future in done:
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                broken = True
                continue
            order = self._flying.pop(future)
            if error is None:
                self._on_row(*future.result())
            elif isinstance(error, WorkerDiedError):
                self._died(order, self._waiting)
            else:
                raise error
        if broken:
            self._broken()

    def _broken(self) -> None:
        """Replace an executor all of whose workers are gone."""
        wait(self._flying)
        alone = len(self._flying) == 1
        for future, order in self._flying.items():
            if future.exception() is None:
                self._on_row(*future.result())
            elif alone:
                self._died(order, self._suspects)
            else:
                self._suspects.append(order)
        self._flying.clear()
        self._executor.renew()

    def _died(self, order: Order, again: deque[Order]) -> None:
        """Note that a run's own worker died; fly it again, or report it as failed."""
        name = order.run.run_id
        self._deaths[name] = self._deaths.get(name, 0) + 1
        if self._deaths[name] < MOST_DEATHS:
            again.appendleft(order)
            return
        reason = f"its worker died {MOST_DEATHS} times; out of memory?"
        self._on_row(failed(order.run, f"WorkerDied: {reason}"), 0.0)
