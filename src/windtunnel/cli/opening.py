"""From what the user typed to a trace, a cluster and the settings of a flight, checked in order.

Everything that can be refused without reading the trace is refused before it is read.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windtunnel.cli.options import FLIGHT
from windtunnel.cli.proportion import refuse_out_of_proportion
from windtunnel.cli.screen import progress, shows_progress
from windtunnel.site.conditions import QUIET

if TYPE_CHECKING:
    from windtunnel.cluster.spec import ClusterSpec
    from windtunnel.site.conditions import Conditions
    from windtunnel.traces.trace import Trace


@dataclass(frozen=True)
class TraceWish:
    """A trace as the user asked for it.

    Attributes:
        spec: name, path or ``-``.
        reader: ``--format``; None = found out.
        jobs: ``--jobs``; None = not given, as for the others.
        load: ``--load``.
        seed: ``--seed``.
        cpu_jobs: ``--cpu-jobs``.
        tasks: ``--tasks``.
        zone: ``--zone``.
        bad_rows: ``--bad-rows``.
    """

    spec: str
    reader: str | None = None
    cpu_jobs: bool = False
    tasks: bool = False
    zone: str | None = None
    bad_rows: str | None = None
    jobs: int | None = None
    load: float | None = None
    seed: int | None = None

    @property
    def is_synthetic(self) -> bool:
        """Whether the trace is made here, from published statistics or from a twin's."""
        from windtunnel.traces.trace_name import TraceName

        return TraceName.parse(self.spec).is_made or self.reader == "twin"

    def options(self, *, seed_is_for_trace: bool = False) -> dict[str, Any]:
        """Return the options that `windtunnel.open_trace` is to get.

        Args:
            seed_is_for_trace: the command has no other use for a seed.

        Raises:
            SpecError: an option of traces that are made is given for one that is read, or the
                reverse.
        """
        from windtunnel.errors import SpecError, quote
        from windtunnel.traces.trace_name import TraceName

        drawn = TraceName.parse(self.spec).says_seed and not seed_is_for_trace
        made = {
            "jobs": self.jobs,
            "load": self.load,
            "seed": None if drawn else self.seed,
            "cpu_jobs": self.cpu_jobs or None,
            "tasks": self.tasks or None,
        }
        read = {"zone": self.zone, "bad_rows": self.bad_rows}
        given = {
            name: value
            for name, value in (made if self.is_synthetic else read).items()
            if value is not None
        }
        for name, value in (read if self.is_synthetic else made).items():
            if value is not None and (name != "seed" or seed_is_for_trace):
                kind = "traces that are read" if self.is_synthetic else "synthetic traces and twins"
                raise SpecError(
                    f"--{name.replace('_', '-')}",
                    f"only {kind} take it; {quote(self.spec)} is not one of them.",
                )
        return given

    def command_words(self) -> list[str]:
        """Return the words that name the trace on a command line."""
        words = [self.spec]
        for option, value in (
            ("--format", self.reader),
            ("--jobs", self.jobs),
            ("--load", self.load),
            ("--zone", self.zone),
            ("--bad-rows", self.bad_rows),
        ):
            words += [] if value is None else [option, str(value)]
        words += ["--cpu-jobs"] * self.cpu_jobs + ["--tasks"] * self.tasks
        return words


def open_wish(
    wish: TraceWish, *, show: bool | None = None, seed_is_for_trace: bool = False
) -> Trace:
    """Open a trace, downloading it first where it is published and not here.

    Args:
        wish: the trace.
        show: show progress; None = where somebody would see it.
        seed_is_for_trace: see `TraceWish.options`.

    Raises:
        WindtunnelError: it cannot be opened, or its numbers are out of all proportion.
    """
    options = wish.options(seed_is_for_trace=seed_is_for_trace)
    from windtunnel.traces import registry
    from windtunnel.traces.open import open_trace
    from windtunnel.traces.published import PUBLISHED
    from windtunnel.traces.trace_name import TraceName

    name = TraceName.parse(wish.spec).base.lower().removesuffix(":default")
    if wish.reader is None and name in PUBLISHED and registry.locate(name) is None:
        registry.fetch(
            name, progress=shows_progress() if show is None else show
        )  # with a bar of its own
    source = "standard input" if wish.spec == "-" else wish.spec
    with progress(f"Reading {source}", show=show):
        trace = open_trace(wish.spec, format=wish.reader, **options)
    refuse_out_of_proportion(trace.jobs)
    return trace


def cluster_for(trace: Trace, chosen: ClusterSpec | None) -> tuple[ClusterSpec, tuple[str, ...]]:
    """Return the cluster to fly on, and what to tell about the choice.

    Args:
        trace: the trace, which may know its own cluster.
        chosen: the user's; None = not given.

    Raises:
        SpecError: neither the user nor the trace names one.
    """
    from windtunnel.cluster.presets import SITES
    from windtunnel.errors import SpecError, quote

    if chosen is not None:
        return chosen, ()
    if trace.cluster is not None:
        return trace.cluster, (
            "No --cluster was given: the jobs fly on the cluster that comes with the trace.",
        )
    raise SpecError(
        "--cluster",
        f"the trace {quote(trace.name)} does not say on what cluster it ran; give one: "
        f"--cluster 64x8:A100 (nodes x GPUs : type), pool:512, FILE.toml or one of "
        f"{', '.join(sorted(SITES))}.",
    )


def check_out(
    out: Path | None, endings: tuple[str, ...], trace: str, option: str = "--out"
) -> None:
    """Check that a result can be written, before the run.

    Args:
        out: the file; None = nothing is to be written.
        endings: what its name may end in.
        trace: what is read, which must not be overwritten.
        option: what names the file.

    Raises:
        SpecError: another ending, no such folder, no permission, or the trace itself.
    """
    from windtunnel.errors import SpecError, quote

    if out is None:
        return
    where = f"{option} {out}"
    if not out.name.lower().endswith(endings):
        raise SpecError(
            where, f"found the ending {quote(out.suffix)}; expected {' or '.join(endings)}."
        )
    folder = out.parent
    if not folder.is_dir():
        raise SpecError(where, f"expected a folder that exists; {quote(str(folder))} is none.")
    if out.is_dir():
        raise SpecError(where, "expected a file; it is a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise SpecError(where, f"expected a folder that can be written to; {folder} cannot.")
    from windtunnel.traces.trace_name import TraceName

    read = TraceName.parse(trace).base
    if out.exists() and Path(read).exists() and out.samefile(read):
        raise SpecError(where, "is the trace itself; expected another file.")


def flight_words(asked: Conditions, placement: str) -> list[str]:
    """Return the words of a command line that give these conditions again.

    Args:
        asked: what the user chose.
        placement: the placement that was used.
    """
    words = []
    for name in FLIGHT:
        value = placement if name == "placement" else asked.value(name)
        if value is True:
            words.append(f"--{name.replace('_', '-')}")
        elif value != QUIET[name] or name == "seed":
            text = f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
            if isinstance(value, tuple):
                text = ",".join(value) or "none"
            words += [f"--{name.replace('_', '-')}", text]
    return words
