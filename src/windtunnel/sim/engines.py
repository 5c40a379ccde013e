"""The engines: the compiled one, and the reference, which is the specification of a run."""

from __future__ import annotations

from typing import Any


def choose_engine(name: str) -> Any:
    """Return the engine module (``NAME``, ``run``) to fly with.

    Args:
        name: ``auto`` (the compiled one), ``compiled`` or ``reference``.
    """
    if name == "reference":
        from windtunnel.sim import reference

        return reference
    from windtunnel.sim import flying

    return flying
