"""Options that several commands share, with the words they accept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from windtunnel.cli.group import Session
from windtunnel.errors import SpecError
from windtunnel.site.conditions import FIELDS, QUIET
from windtunnel.site.fields import SECTIONS
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., Any])


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
        try:
            return seconds("", value)
        except SpecError as error:
            return self.fail(error.message, param, ctx)


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


def word_option(flag: str, *words: str, help: str) -> Callable[[Command], Command]:  # noqa: A002 - click's
    """Return an option that takes one of a few words, the first by default."""
    return click.option(
        flag,
        type=OneOf(*words),
        default=words[0],
        show_default=True,
        metavar="|".join(words),
        help=help,
    )


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


#: The options of `reading_options`, by the names of their values.
READING = ("reader", "zone", "bad_rows")


def trace_options(command: Command) -> Command:
    """Add TRACE and what says how to read it."""
    return click.argument("trace", metavar="TRACE")(reading_options(command))


def reading_options(command: Command) -> Command:
    """Add what says how to read a trace; what makes one stands in its name."""
    for add in (
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


def field_options(*names: str) -> Callable[[Command], Command]:
    """Return what adds options for fields of a run, as `windtunnel.site` describes them.

    Args:
        names: of the fields, in the order of the help.
    """

    def add(command: Command) -> Command:
        for name in reversed(names):
            command = field_option(name)(command)
        return command

    return add


def field_option(name: str, told: str | None = None) -> Callable[[Command], Command]:
    """Return the option for a field of a run, as `windtunnel.site` describes it.

    Args:
        name: of the field.
        told: what the command's help says of it instead.
    """
    field = FIELDS[name]
    text = field.help if told is None else told
    # What names a seed is told apart from 0: some traces are made with it, others refuse it.
    quiet = None if field.kind == "seed" else QUIET[name]
    default = field.default or ("" if QUIET[name] is None else f"{QUIET[name]}")
    if default and "[default" not in text:
        text = f"{text}  [default: {default}]"
    if field.kind == "flag":
        return click.option(
            f"--{name.replace('_', '-')}",
            name,
            cls=SectionOption,
            section=field.section,
            is_flag=True,
            help=text.partition("  [default")[0],
        )
    words = [f"--{name.replace('_', '-')}"] + (["--site"] if name == "cluster" else [])
    kinds: dict[str, Any] = {
        "word": OneOf(*field.words),
        "time": Seconds(),
        "cost": ResumeCosts(),
        "names": TypeNames(),
        "seed": click.IntRange(min=0),
    }
    return click.option(
        *words,
        name,
        cls=SectionOption,
        section=field.section,
        type=kinds.get(field.kind, str),
        default=quiet,
        metavar=field.metavar,
        help=text,
    )


def quotas_option(command: Command) -> Command:
    """Add ``--quotas``, the file of policy ``quota``."""
    return click.option(
        "--quotas",
        metavar="FILE.toml",
        help="Quotas of virtual clusters for policy quota.  [default: by past use]",
    )(command)


def kueue_option(command: Command) -> Command:
    """Add ``--kueue``, the manifests of policy ``kueue``."""
    return click.option(
        "--kueue",
        metavar="DIR|FILE.yaml",
        help="Kueue's manifests, for policy kueue.",
    )(command)


#: The fields that are options of the commands that fly a trace, in the order of their help.
FLIGHT: tuple[str, ...] = tuple(
    name for name, field in FIELDS.items() if field.is_option and name != "policy"
)


class SectionOption(click.Option):
    """An option that the help lists in a section of its own.

    Args:
        section: its name.
        options: as for `click.Option`.
    """

    def __init__(self, *args: Any, section: str, **options: Any) -> None:
        super().__init__(*args, **options)
        self.section = section


class SectionCommand(click.Command):
    """A command whose help lists its options in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section; what belongs to none comes first and last."""
        rows: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is not None and not isinstance(param, click.Argument):
                rows.setdefault(_section_of(param), []).append(row)
        for section in ("trace", *SECTIONS, "output"):
            if section in rows:
                with formatter.section(section.capitalize()):
                    formatter.write_dl(rows[section])


def _section_of(param: click.Parameter) -> str:
    if isinstance(param, SectionOption):
        return param.section
    if param.name in {"policy", "policies", "quotas", "kueue"}:
        return "scheduler"
    return "trace" if param.name in READING else "output"


def out_option(metavar: str, help_text: str) -> Callable[[Command], Command]:
    """Return the option ``--out``, a file."""
    return click.option("--out", type=click.Path(path_type=Path), metavar=metavar, help=help_text)
