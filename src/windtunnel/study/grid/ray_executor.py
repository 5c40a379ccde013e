"""Runs on a Ray cluster, behind the interface of any executor.

Ray starts another worker where one dies; the run that it flew comes back as `WorkerDiedError`.
"""

from __future__ import annotations

import os
import socket
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, quote
from windtunnel.study.grid.executor import StudyExecutor
from windtunnel.study.grid.inputs import MappedTable
from windtunnel.study.worker_processes import WorkerDiedError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from windtunnel.study.grid.flying import ShippedTable
    from windtunnel.study.grid.inputs import Input


#: Seconds to wait for a cluster to answer.
_PATIENCE = 10.0


class RayExecutor(Executor):
    """An executor whose workers are those of the Ray cluster that this process is connected to.

    Each call takes one CPU of the cluster.
    """

    def __init__(self) -> None:
        import ray

        self._task = ray.remote(num_cpus=1, max_retries=0)(_called)
        self._refs: dict[Future[Any], Any] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future of ``fn(*args, **kwargs)``."""
        outer: Future[Any] = Future()
        outer.set_running_or_notify_cancel()
        ref = self._task.remote(fn, args, kwargs)
        self._refs[outer] = ref
        ref.future().add_done_callback(lambda inner: self._settle(outer, inner))
        return outer

    def _settle(self, outer: Future[Any], inner: Future[Any]) -> None:
        """Hand a result or an error on, Ray's own words for it taken off."""
        from ray import exceptions

        self._refs.pop(outer, None)
        error = inner.exception()
        if error is None:
            outer.set_result(inner.result())
        elif isinstance(error, exceptions.RayTaskError):
            outer.set_exception(error.cause)
        elif isinstance(
            error,
            exceptions.WorkerCrashedError
            | exceptions.NodeDiedError
            | exceptions.OutOfMemoryError
            | exceptions.ObjectLostError,
        ):
            died = WorkerDiedError(type(error).__name__)
            died.__cause__ = error
            outer.set_exception(died)
        else:
            outer.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the executors' signature
        """Wait for what runs, or cancel it; the connection stays."""
        import ray

        refs = list(self._refs.values())
        if cancel_futures:
            for ref in refs:
                ray.cancel(ref, force=True)
        if wait and refs:
            ray.wait(refs, num_returns=len(refs))


def _called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return fn(*args, **kwargs)


@dataclass(frozen=True)
class RemoteTable:
    """A jobs table in Ray's object store, sent to each node once.

    Attributes:
        name: digest of the table.
        ref: Ray's reference to it.
    """

    name: str
    ref: Any

    def load(self) -> pa.Table:
        """Return the table, without a copy."""
        import ray

        return ray.get(self.ref)

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteTable) and other.name == self.name


class RayCluster(StudyExecutor):
    """A Ray cluster.

    Args:
        address: ``ray``, ``ray://HOST:PORT`` or ``ray:HOST:PORT`` (see `executors.executor_for`).
        workers: runs at a time; None = one a CPU of the cluster.

    Raises:
        SpecError: Ray is not installed, or there is no such cluster.
    """

    def __init__(self, address: str, workers: int | None) -> None:
        # Nothing about a study leaves the machine unless the user asks Ray for it.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ImportError as error:
            raise SpecError("--on", "needs Ray: pip install 'windtunnel[ray]'.") from error
        self._owned = not ray.is_initialized()
        if self._owned:
            _connect(address, workers)
        super().__init__(workers or max(1, int(ray.cluster_resources().get("CPU", 1))))

    def _start(self) -> Executor:
        return RayExecutor()

    def ship(self, given: Input) -> ShippedTable:
        """Return the table in Ray's object store."""
        import ray

        return RemoteTable(given.sha256, ray.put(MappedTable(str(given.path)).load()))

    def close(self, *, landed: bool) -> None:
        """Disconnect, where we connected; a cluster of our own ends with that."""
        import ray

        super().close(landed=landed)
        if self._owned:
            ray.shutdown()


def _connect(address: str, workers: int | None) -> None:
    """Connect to a cluster, or start one on this machine."""
    import ray

    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    named = os.environ.get("RAY_ADDRESS") if address == "ray" else address.removeprefix("ray:")
    if address.startswith("ray://"):
        named = address
    try:
        if named:
            _knock(named.removeprefix("ray://"))
            ray.init(address=named, **quiet)
        else:
            ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
    except ImportError as error:
        message = f"{quote(named)} needs Ray's client: pip install 'ray[client]'."
        raise SpecError("--on", message) from error
    except (OSError, ValueError, RuntimeError) as error:
        raise SpecError("--on", f"no Ray cluster at {quote(named)}: {error}") from error


def _knock(address: str) -> None:
    """Check that somebody listens at an address; Ray itself would go on asking for minutes."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
