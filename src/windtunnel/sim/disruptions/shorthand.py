"""The disruptions that a word on the command line stands for."""

from __future__ import annotations

from windtunnel.errors import SpecError, quote
from windtunnel.sim.disruptions.availability import spot_failures
from windtunnel.sim.disruptions.spec import Checkpointing, Disruptions, FailureModel


def parse_disruptions(text: str) -> Disruptions:
    """Return what a command-line word stands for.

    Args:
        text: a ``.toml`` file, a ``.json`` file of how many spot nodes could be had
            (`windtunnel.sim.disruptions.availability`), or ``mtbf:30d/mttr:4h`` with, if wanted,
            ``/checkpoint:1h``, ``/cost:60``, ``/restart:5m`` and
            ``/level:rack`` (racks fail as one).

    Raises:
        SpecError: neither of these.

    >>> parse_disruptions("mtbf:30d/mttr:4h/checkpoint:1h").checkpoint.interval
    3600.0
    """
    if text.strip().endswith(".toml"):
        return Disruptions.from_toml(text.strip())
    if text.strip().endswith(".json"):
        return Disruptions(node_failures=spot_failures(text.strip()))
    known = ("mtbf", "mttr", "checkpoint", "cost", "restart", "level")
    values: dict[str, str] = {}
    for part in text.split("/"):
        name, found, value = part.strip().partition(":")
        if not found:
            raise SpecError(
                "disruptions",
                f"found {quote(text)}; expected a .toml file or mtbf:30d/mttr:4h/checkpoint:1h.",
            )
        if name not in known:
            raise SpecError.unknown("disruptions", name, known)
        values[name] = value
    if "mtbf" not in values or "mttr" not in values:
        raise SpecError("disruptions", f"found {quote(text)}; expected both mtbf: and mttr:.")
    return Disruptions(
        failure_models=(
            FailureModel(mtbf=values["mtbf"], mttr=values["mttr"], level=values.get("level")),
        ),
        checkpoint=Checkpointing(
            interval=values.get("checkpoint"),
            cost=values.get("cost", 0.0),
            restart_cost=values.get("restart", 0.0),
        ),
    )
