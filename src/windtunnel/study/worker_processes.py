"""Worker processes of this machine behind the interface of any executor, none of them missed.

The standard library's pool of processes breaks as a whole when a worker dies, does not tell whose
call killed it, and can wait for ever if the death comes at a bad moment (an answer on its way, a
call being handed out). Here each worker has a pipe of its own, at the other end of which a thread
waits: a death is the end of that pipe, reported for the one call that was in it.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
import traceback
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from multiprocessing import (
    connection,
    current_process,
    get_context,
    parent_process,
    resource_tracker,
)
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

from windtunnel.errors import SpecError, WindtunnelError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnContext
    from types import TracebackType

#: The exit code of a worker whose script would start workers of its own (`end_if_importing`).
_STARTS_AGAIN = 97


def end_if_importing() -> None:
    """End this process if it is a worker that is still importing the script that started it.

    Whatever would start workers calls it first: a script that does so as it is imported would
    begin anew in each of them. The process that the script runs in tells its user.
    """
    if getattr(current_process(), "_inheriting", False):  # as multiprocessing itself asks
        raise SystemExit(_STARTS_AGAIN)


class WorkerDiedError(WindtunnelError):
    """The worker process of a call died; the executor itself lives on."""

    def __init__(self, cause: str = "a worker process died; killed, or out of memory?") -> None:
        super().__init__(cause)


class WorkerProcesses(Executor):
    """Processes started afresh (no copy of this one's threads), each when it is first needed.

    A call whose worker dies raises `WorkerDiedError`; the next call has another worker. A call
    raises `SpecError` where the script that is run starts workers as it is imported, which each of
    them does. What is called, its arguments, its answer and its error travel pickled.

    As a context manager it waits for its calls, but lets them go where an error ends the block.

    Args:
        workers: calls at a time, at least 1.
    """

    def __init__(self, workers: int) -> None:
        end_if_importing()
        self._context = get_context("spawn")
        self._held, self._leash = self._context.Pipe(duplex=False)
        self._own = threading.local()
        self._threads = ThreadPoolExecutor(workers)
        self._starting = threading.Lock()
        self._workers: list[_Worker] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Return a future of ``fn(*args, **kwargs)``.

        Raises:
            RuntimeError: after `shutdown`.
        """
        return self._threads.submit(self._call, fn, args, kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - the executors' signature
        """End the workers, each once its call is over; waits for that if asked to."""
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            for worker in self._workers:
                worker.end()
            self._workers.clear()

    def let_go(self) -> None:
        """End the workers at once, whatever they are at; their calls raise `WorkerDiedError`."""
        self._leash.close()
        self.shutdown(wait=False, cancel_futures=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.let_go()

    def _call(self, *call: Any) -> Any:
        """Have a call done by this thread's worker."""
        worker: _Worker | None = getattr(self._own, "worker", None)
        if worker is None:
            with self._starting:
                worker = self._own.worker = _Worker(self._context, self._held)
                self._workers.append(worker)
        try:
            answer, error, trace = worker.ask(call)
        except (EOFError, OSError) as death:
            self._own.worker = None
            with self._starting:
                self._workers.remove(worker)
            worker.end()
            if worker.starts_again:
                message = (
                    "every worker process imports the script, which starts workers itself: put "
                    'what it runs under if __name__ == "__main__":'
                )
                raise SpecError("__main__", message) from None
            raise WorkerDiedError from death
        if error is not None:
            error.add_note(trace)
            raise error
        return answer


class _Worker:
    """A process, and this end of the pipe to it."""

    def __init__(self, context: SpawnContext, leash: Connection) -> None:
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, leash), daemon=True)
        resource_tracker.ensure_running()  # which else, while it starts, lets signals through
        # Ctrl-C goes to workers, too: one that is still loading would print where it was.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()  # else a worker's death were not the end of the pipe

    def ask(self, call: tuple[Any, ...]) -> tuple[Any, BaseException | None, str]:
        """Return what a call returned, or raised with its traceback.

        Raises:
            EOFError, OSError: the worker died.
        """
        self._pipe.send(call)
        answer: tuple[Any, BaseException | None, str] = self._pipe.recv()
        return answer

    def end(self) -> None:
        """End a worker that is idle or dead, and wait for that."""
        self._pipe.close()
        self._process.join()

    @property
    def starts_again(self) -> bool:
        """Whether it ended because the script that it imported would start workers."""
        return self._process.exitcode == _STARTS_AGAIN


def _serve(calls: Connection, leash: Connection) -> None:
    """Answer calls until there are no more."""
    _obey(leash)
    while True:
        try:
            function, args, kwargs = calls.recv()
        except EOFError:
            return
        try:
            answer = (function(*args, **kwargs), None, "")
            data = ForkingPickler.dumps(answer)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller gets it
            data = _as_bytes(error)
        calls.send_bytes(data)


def _as_bytes(error: Exception) -> Any:
    """Return an error as bytes; of one that cannot travel its name and traceback."""
    trace = traceback.format_exc()
    try:
        data = ForkingPickler.dumps((None, error, trace))
        pickle.loads(data)  # noqa: S301 - what was just written
    except Exception:  # noqa: BLE001 - an error of anybody's, with anything in it
        data = ForkingPickler.dumps((None, RuntimeError(type(error).__name__), trace))
    return data


def _obey(leash: Connection) -> None:
    """Make this worker end at once when its parent lets go of it or dies, even by SIGKILL.

    Ctrl-C is the parent's business, which then lets go.

    Args:
        leash: the end of a pipe of which the parent holds the other.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # as `_Worker` started us
    parent = parent_process()
    watched: list[Any] = [leash] if parent is None else [leash, parent.sentinel]

    def watch() -> None:
        connection.wait(watched)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
