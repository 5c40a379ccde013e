"""The published facts a synthetic trace is made from: one TOML file a cluster in this package."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

import msgspec

from windtunnel.errors import SpecError
from windtunnel.traces.synthetic.request_facts import RequestFacts
from windtunnel.traces.synthetic.size_facts import JoinedFacts, SizeFacts
from windtunnel.traces.synthetic.workload_facts import WorkloadFacts

if TYPE_CHECKING:
    from typing import TypeAlias

    #: The facts of a trace; ``family`` in its file says of which kind.
    Published: TypeAlias = WorkloadFacts | SizeFacts | JoinedFacts | RequestFacts

_PACKAGE = "windtunnel.traces.synthetic"

#: Names of the synthetic traces, sorted: one a TOML file of this package.
NAMES: tuple[str, ...] = tuple(
    sorted(
        entry.name.removesuffix(".toml")
        for entry in resources.files(_PACKAGE).iterdir()
        if entry.name.endswith(".toml")
    )
)


@lru_cache(maxsize=len(NAMES))
def published(name: str) -> Published:
    """Return the facts of a synthetic trace.

    Raises:
        SpecError: no such trace; the nearest name is suggested.
    """
    key = str(name).lower()
    if key not in NAMES:
        raise SpecError.unknown("synthetic", str(name), NAMES)
    raw = resources.files(_PACKAGE).joinpath(f"{key}.toml").read_bytes()
    kinds = WorkloadFacts | SizeFacts | JoinedFacts | RequestFacts
    facts: Published = msgspec.toml.decode(raw, type=kinds)
    return facts
