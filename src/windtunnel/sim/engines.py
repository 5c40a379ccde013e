"""The engines: the compiled one, and the reference, which is the specification of a run."""

from __future__ import annotations

from typing import Any


def choose_engine(name: str) -> Any:
    """Return the engine to fly with: a module with ``NAME`` and ``run``.

    ``run(problem, policy, placement, **rules)`` flies the jobs by `windtunnel.sim.run_rules.Rules`
    and returns the flight. It raises PolicyError where the policy decides something impossible, or
    lets jobs wait for ever, and SpecError for disruptions under which a job never gets anywhere.

    Args:
        name: ``auto`` (the compiled one), ``compiled`` or ``reference``.
    """
    if name == "reference":
        from windtunnel.sim import reference

        return reference
    from windtunnel.sim import flying

    return flying
