"""The disruptions that a word on the command line stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from windtunnel.errors import SpecError, quote
from windtunnel.sim.disruptions.availability import spot_failures
from windtunnel.sim.disruptions.dated import disruptions_of
from windtunnel.sim.disruptions.failures import Checkpointing, FailureModel
from windtunnel.sim.disruptions.presets import MTTR, PRESETS
from windtunnel.sim.disruptions.spec import Disruptions
from windtunnel.toml_file import read_toml

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What may follow a rate: checkpoints, who repairs, who stands in, and what becomes of jobs.
_COSTS = ("checkpoint", "cost", "restart", "startup", "crews", "spares", "on_failure")


def parse_disruptions(text: str) -> Disruptions:
    """Return what a command-line word stands for.

    Args:
        text: a ``.toml`` file, a ``.json`` file of how many spot nodes could be had
            (`windtunnel.sim.disruptions.availability`), or ``mtbf:30d/mttr:4h`` with, if wanted,
            ``/checkpoint:1h``, ``/cost:60``, ``/restart:5m``, ``/crews:2`` (that repair),
            ``/spares:4`` (nodes that stand in), ``/on_failure:swap`` and ``/level:rack`` (racks
            fail as one); or a published rate by its name (`windtunnel.sim.disruptions.presets`) in
            place of ``mtbf``: ``llama3/checkpoint:1h``.

    Raises:
        SpecError: neither of these.

    >>> parse_disruptions("mtbf:30d/mttr:4h/checkpoint:1h").checkpoint.interval
    3600.0
    """
    if text.strip().endswith(".toml"):
        return disruptions_of(read_toml(text.strip()), text.strip())
    if text.strip().endswith(".json"):
        return Disruptions(node_failures=spot_failures(text.strip()))
    first, *parts = text.split("/")
    preset = PRESETS.get(first.strip())
    if preset is None:
        values = _values(text, (first, *parts), ("mtbf", "mttr", "level", *_COSTS))
        if "mtbf" not in values or "mttr" not in values:
            raise SpecError("disruptions", f"found {quote(text)}; expected both mtbf: and mttr:.")
        model = FailureModel(mtbf=values["mtbf"], mttr=values["mttr"], level=values.get("level"))
        found = Disruptions(failure_models=(model,))
    else:
        values = _values(text, parts, ("mttr", *_COSTS))
        found = preset(values.get("mttr", MTTR))
    checkpoint = Checkpointing(
        interval=values.get("checkpoint"),
        cost=values.get("cost", 0.0),
        restart_cost=values.get("restart", 0.0),
        startup_cost=values.get("startup", 0.0),
    )
    for name in ("crews", "spares"):
        if name in values and not values[name].isdecimal():
            message = f"{name}: found {quote(values[name])}; expected a whole number."
            raise SpecError("disruptions", message)
    return msgspec.structs.replace(
        found,
        checkpoint=checkpoint,
        repair_crews=None if "crews" not in values else int(values["crews"]),
        spares=int(values.get("spares", "0")),
        on_failure=values.get("on_failure", "restart"),
    )


def _values(text: str, parts: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return the parts of a word by their names."""
    values: dict[str, str] = {}
    for part in parts:
        name, found, value = part.strip().partition(":")
        if not found:
            raise SpecError(
                "disruptions",
                f"found {quote(text)}; expected a .toml or .json file, mtbf:30d/mttr:4h/"
                f"checkpoint:1h or one of {', '.join(PRESETS)}.",
            )
        if name not in known:
            raise SpecError.unknown("disruptions", name, known)
        if name in values:
            raise SpecError("disruptions", f"found {quote(text)}; expected {name}: once.")
        values[name] = value
    return values
