"""Options that several commands share, with the words they accept. Imports click alone."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from windtunnel.cli.group import Session

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., Any])

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Seconds(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """A time span: a plain number is seconds; ``90m``, ``12h`` and ``30d`` are understood."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the span in seconds.

        Raises:
            click.BadParameter: it is no number, negative or not finite.
        """
        text = str(value).strip().lower()
        unit = _UNITS.get(text[-1:], 0.0)
        try:
            number = float(text[:-1]) * unit if unit else float(text)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            self.fail(
                f"found {value!a}; expected a number of seconds >= 0, or 90m, 12h, 30d.",
                param,
                ctx,
            )
        return number


class ResumeCosts(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """What resuming costs: a time as in `Seconds`, or one by size or by name: ``1=7/9=1m``."""

    name = "cost"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """Return seconds, or the same words with seconds as plain numbers.

        Raises:
            click.BadParameter: a part has no ``=``, or its time is none.
        """
        if "=" not in str(value):
            return Seconds().convert(value, param, ctx)
        parts = []
        for part in str(value).split("/"):
            name, _, cost = part.rpartition("=")
            if not name.strip():
                self.fail(
                    f"found {value!a}; expected a time, or one by GPUs (1=7/2=30/9=60) or by what "
                    "runs (bert=20/*=5).",
                    param,
                    ctx,
                )
            parts.append(f"{name.strip()}={Seconds().convert(cost, param, ctx):g}")
        return "/".join(parts)


class Window(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """A span of time as ``START:END``, each as in `Seconds`."""

    name = "window"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, float]:
        """Return its ends in seconds.

        Raises:
            click.BadParameter: it is no span, or empty.
        """
        if isinstance(value, tuple):
            return value
        parts = str(value).split(":")
        if len(parts) != 2:  # noqa: PLR2004 - start and end
            self.fail(f"found {value!a}; expected START:END, such as 2d:3d.", param, ctx)
        start, end = (Seconds().convert(part, param, ctx) for part in parts)
        if not start < end:
            self.fail(f"found {value!a}; expected a start before its end.", param, ctx)
        return start, end


class TypeNames(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """Names of GPU types, joined by commas; ``all`` is no choice, ``none`` an empty one."""

    name = "types"

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,  # noqa: ARG002 - click's contract
        ctx: click.Context | None,  # noqa: ARG002 - ditto
    ) -> tuple[str, ...] | None:
        """Return the names; None = all."""
        if value == "all" or isinstance(value, tuple):
            return None if value == "all" else value
        names = () if value == "none" else str(value).split(",")
        return tuple(name.strip() for name in names if name.strip())


class OneOf(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """One of a few words; a wrong one is answered with the nearest."""

    name = "word"

    def __init__(self, *words: str) -> None:
        self._words = words

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word.

        Raises:
            click.BadParameter: it is none of them.
        """
        word = str(value)
        if word not in self._words:
            from windtunnel.errors import nearest, quote

            hint = nearest(word, self._words)
            self.fail(
                f"found {quote(word)}; expected {' or '.join(self._words)}.{hint}", param, ctx
            )
        return word


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001
    session = ctx.find_object(Session)
    if value and session is not None:
        session.debug = True


def debug_option(command: Command) -> Command:
    """Add ``--debug``, which goes before a command's name or behind it."""
    return click.option(
        "--debug",
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_set_debug,
        help="Show the traceback of an error.",
    )(command)


def output_options(command: Command) -> Command:
    """Add what every command takes: ``--json`` (as ``as_json``) and ``--debug``."""
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object and nothing else."
    )
    return as_json(debug_option(command))


#: `windtunnel.schema.BAD_ROWS`, which is not imported here: it needs Arrow.
BAD_ROWS = ("raise", "drop")


def trace_options(command: Command) -> Command:
    """Add TRACE and what says how to read or to make it."""
    return click.argument("trace", metavar="TRACE")(reading_options(command))


def reading_options(command: Command) -> Command:
    """Add what says how to read or to make a trace."""
    for add in (
        click.option(
            "--load",
            type=float,
            metavar="X",
            help="Synthetic traces: GPU time wanted, as a share of what the cluster has; "
            "twins: submissions, 1 = as many a day as the source had.",
        ),
        click.option(
            "--jobs",
            type=int,
            metavar="N",
            help="Synthetic traces and twins: number of jobs (GPU jobs, where synthetic).",
        ),
        click.option(
            "--tasks", is_flag=True, help="Synthetic traces that have them: the tasks of the jobs."
        ),
        click.option(
            "--cpu-jobs", is_flag=True, help="Synthetic traces: the jobs without GPUs, too."
        ),
        click.option(
            "--bad-rows",
            type=OneOf(*BAD_ROWS),
            metavar="raise|drop",
            help="Rows that break a rule: refuse the file, or leave them out and count them.  "
            "[default: raise]",
        ),
        click.option(
            "--zone",
            metavar="ZONE",
            help="IANA time zone of the file's wall clock, such as Europe/Berlin.",
        ),
        click.option(
            "--format",
            "reader",
            metavar="FORMAT",
            help="The file's format, where its name and content do not tell (`windtunnel traces`).",
        ),
    ):
        command = add(command)
    return command


def seed_option(help_text: str) -> Callable[[Command], Command]:
    """Return the option ``--seed`` with its meaning for the command."""
    return click.option("--seed", type=click.IntRange(min=0), metavar="N", help=help_text)


def flight_options(command: Command) -> Command:
    """Add what `windtunnel.simulate` takes besides jobs and policy."""
    for add in (
        click.option(
            "--incomplete",
            type=OneOf("raise", "reject"),
            default="raise",
            show_default=True,
            metavar="raise|reject",
            help="A job without submit time, duration or GPUs: refuse the run, or the job.",
        ),
        click.option(
            "--oversize",
            type=OneOf("raise", "reject"),
            default="raise",
            show_default=True,
            metavar="raise|reject",
            help="A job larger than the cluster: refuse the run, or the job.",
        ),
        click.option(
            "--disruptions",
            metavar="FILE|mtbf:30d/mttr:4h",
            help="Failures, checkpoints, maintenance, capacity changes, reservations: a TOML file, "
            "or random failures: mtbf:30d/mttr:4h/checkpoint:1h.",
        ),
        click.option(
            "--until",
            type=Seconds(),
            help="Stop the clock here, counted from time 0 of the trace (seconds, or 30d).",
        ),
        click.option(
            "--slowdown",
            metavar="MODEL",
            help="Slower where spread or beside others: FILE.toml, or words such as "
            "spread=0.42,rack=0.8,share=0.9,cpu=0.28.  [default: no slower]",
        ),
        click.option(
            "--restore-time",
            type=ResumeCosts(),
            default=0.0,
            show_default=True,
            metavar="TIME|WORDS",
            help="What it needs to restore it, paid then, too; it holds its GPUs meanwhile.",
        ),
        click.option(
            "--penalty",
            type=Seconds(),
            help="Elastic policies: what each launch or change of a job costs.  [default: 260]",
        ),
        click.option(
            "--save-time",
            type=ResumeCosts(),
            default=0.0,
            show_default=True,
            metavar="TIME|WORDS",
            help="What a preempted job needs to save its state, paid when it goes on: a time, or "
            "by GPUs, as in 1=7/2=30/9=60, or by workload or template, as in bert=20/*=5.",
        ),
        click.option(
            "--decide-every",
            type=Seconds(),
            metavar="TIME",
            help="Decide at multiples of this time only.  [default: whenever something happens]",
        ),
        click.option(
            "--preemption",
            type=OneOf("feasible", "quota_walk"),
            default="feasible",
            show_default=True,
            metavar="feasible|quota_walk",
            help="How a policy that preempts makes room: it stops jobs only for one that then "
            "starts, or gives out the cluster's GPUs by rank, wherever they are (strict, skip).",
        ),
        seed_option("Seed of everything random, the synthetic trace included.  [default: 0]"),
        click.option(
            "--engine",
            metavar="NAME",
            default="auto",
            show_default=True,
            help="auto, compiled or reference; the results are the same.",
        ),
        click.option(
            "--events",
            metavar="ORDER",
            default="batch",
            show_default=True,
            help="Events of one instant: batch, or one by one, submissions_first or "
            "completions_first.",
        ),
        click.option(
            "--quotas",
            metavar="FILE.toml",
            help="Quotas of virtual clusters for policy quota.  [default: by past use]",
        ),
        click.option(
            "--throughputs",
            metavar="FILE.json",
            help="Policies gavel:...: measured speeds by job and GPU type.  "
            "[default: the published ones, without pairs]",
        ),
        click.option(
            "--estimates",
            metavar="SOURCE",
            help="What backfilling expects a job to take: recorded (asked for), perfect, or a "
            "predictor such as cart.  [default: the policy's own]",
        ),
        click.option(
            "--compat",
            metavar="NAME",
            help="A published simulator's own ways, to compare with what it printed: pai, gavel, "
            "morphling.",
        ),
        click.option(
            "--arrivals",
            metavar="N/SECONDS",
            help="Other arrivals for the same jobs: 300/60 = 300 every 60 s, in their own order.",
        ),
        click.option(
            "--bind-types",
            type=TypeNames(),
            metavar="TYPES",
            help="GPU types that bind the jobs that name them: V100,T4; all; or none.  "
            "[default: all]",
        ),
        click.option(
            "--resources",
            metavar="all|gpus",
            default="all",
            show_default=True,
            help="Cores and memory constrain where cluster and job state them, or GPUs alone do.",
        ),
        click.option(
            "--sharing",
            metavar="devices|pooled",
            help="Jobs share single GPUs of a node, or its GPUs are one pool.  "
            "[default: devices, where anything needs them]",
        ),
        click.option(
            "--placement",
            metavar="NAME",
            help="best_fit, spread, pool, first_fit, fgd, ...; with options, as in "
            "fgd:ties=index:gang=fill.  [default: best_fit; on a pool, pool]",
        ),
        click.option(
            "--queueing",
            metavar="NAME",
            help="At a job that does not fit: strict waits, skip goes on to the next; easy, "
            "easy_sjbf and conservative backfill.  [default: the policy's own]",
        ),
        click.option(
            "--cluster",
            metavar="SPEC",
            help="64x8:A100, 8x8:A100,4x4:T4, v100:8,k80:24, pool:512, FILE.toml or a published "
            "cluster's name.  "
            "[default: the trace's own, where it is known]",
        ),
    ):
        command = add(command)
    return command


def power_options(command: Command) -> Command:
    """Add what accounts for energy, and the policies of power."""
    for add in (
        click.option(
            "--node-sleep",
            metavar="RULE",
            help="Power idle nodes off: venus, earth, saturn or uranus (Helios' rules), with "
            "options, as in earth,wake_time=5m,buffer=3; or FILE.toml.",
        ),
        click.option(
            "--shift",
            metavar="WORDS",
            help="Let jobs wait for times of less carbon, or lower prices: max_delay=12h, with "
            "interruptible, series=FILE.csv ...; or FILE.toml.  [series: --carbon, --tariff]",
        ),
        click.option(
            "--power-cap",
            metavar="W|FILE.csv",
            help="With --power: never draw more: 450kW, or over time (CSV: time, W); with "
            "limits=uniform or limits=optimised jobs are slowed down to make room.",
        ),
        click.option(
            "--tariff",
            metavar="FILE.csv|PRICE",
            help="With --power: money per kWh, over time (CSV: time, value) or one number.",
        ),
        click.option(
            "--carbon",
            metavar="FILE.csv|G",
            help="With --power: gCO2eq per kWh, over time (CSV: time, value) or one number.",
        ),
        click.option(
            "--power",
            metavar="FILE.toml",
            help="Account for energy: what GPUs, hosts and the building draw.",
        ),
    ):
        command = add(command)
    return command


def out_option(metavar: str, help_text: str) -> Callable[[Command], Command]:
    """Return the option ``--out``, a file."""
    return click.option("--out", type=click.Path(path_type=Path), metavar=metavar, help=help_text)
