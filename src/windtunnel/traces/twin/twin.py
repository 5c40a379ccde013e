"""`Twin`: statistics of a trace that can be saved, and made a trace of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from windtunnel.errors import SpecError
from windtunnel.traces.readers import reader
from windtunnel.traces.source import short_name, source_name
from windtunnel.traces.twin import sample, store
from windtunnel.traces.twin.model import FORMAT, Statistics
from windtunnel.traces.twin.store import faults

if TYPE_CHECKING:
    from pathlib import Path

    from windtunnel.traces.trace import Trace


class Twin(Statistics, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The statistics of a trace (`Statistics`), from which jobs like its own can be made."""

    def __post_init__(self) -> None:
        """Check that the parts agree.

        Raises:
            SpecError: they do not; names the first part at fault.
        """
        for path, expected in faults(self):
            raise SpecError(path, f"expected {expected}.")

    def generate(self, jobs: int | None = None, load: float = 1.0, seed: int = 0) -> Trace:
        """Return a trace whose jobs have the twin's statistics; see `sample.generate`.

        Args:
            jobs: how many; None = as many as the source.
            load: submissions a second over the source's; the twin is shorter where above 1.
            seed: same seed, same bytes; >= 0.

        Raises:
            SpecError: ``jobs < 1`` or too many, ``load <= 0`` or not finite, ``seed < 0``.
        """
        return sample.generate(self, jobs=jobs, load=load, seed=seed)

    def save(self, path: str | Path) -> None:
        """Write the twin as TOML, or as JSON where the name ends in ``.json``.

        Raises:
            TraceError: the file cannot be written.
        """
        store.save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Twin:
        """Read a twin back.

        Raises:
            TraceError: the file cannot be read, or is no twin; names what is wrong in it.
        """
        return store.load(path, cls)


def _looks_like_twin(head: bytes) -> bool:
    return f'"{FORMAT}'.rpartition("-")[0].encode() in head


@reader("twin", extensions=(".twin.toml", ".twin.json"), sniff=_looks_like_twin)
def read_twin(
    path: str | Path, *, jobs: int | None = None, load: float = 1.0, seed: int = 0
) -> Trace:
    """Generate a trace from a twin's file; see `Twin.generate`.

    Raises:
        TraceError: the file is no twin.
        SpecError: an option is out of range.
    """
    trace = Twin.load(path).generate(jobs, load, seed)
    name = short_name(path).removesuffix(".toml").removesuffix(".twin")
    return replace(
        trace, metadata=replace(trace.metadata, name=f"{name} (twin)", source=source_name(path))
    )
