"""How far a flight is, for whoever waits for it: the compiled loop stops now and then to tell."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_listener: ContextVar[Callable[[float], None] | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: Callable[[float], None]) -> Iterator[None]:
    """Tell a listener how far flights are while the block runs.

    Args:
        listener: called a few times a second with the share of the jobs that are over, 0 to 1.

    >>> from windtunnel.sim.progress import tell, telling
    >>> with telling(print):
    ...     tell(0.5)
    0.5
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(share: float) -> None:
    """Tell the listener, if there is one, which share of the jobs is over."""
    listener = _listener.get()
    if listener is not None:
        listener(share)
