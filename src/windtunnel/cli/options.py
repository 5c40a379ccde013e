"""Options that several commands share, with the words they accept."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from windtunnel.cli.group import LazyGroup, Session
from windtunnel.errors import SpecError, nearest, quote
from windtunnel.site.conditions import FIELDS, QUIET
from windtunnel.site.fields import SECTIONS
from windtunnel.time_span import seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    Command = TypeVar("Command", bound=Callable[..., Any])


class Parsed(click.ParamType):  # type: ignore[type-arg] # generic from click 8.5 on
    """What a function makes of a word.

    Args:
        name: what the help calls such a word.
        parse: raises `ValueError` or `SpecError` with what is wrong.
    """

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name, self._parse = name, parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what the word stands for.

        Raises:
            click.BadParameter: it stands for nothing.
        """
        try:
            return self._parse(value) if isinstance(value, str) else value
        except SpecError as error:
            return self.fail(error.message, param, ctx)
        except ValueError as error:
            return self.fail(str(error), param, ctx)


def span(word: str) -> float:
    """Return a time span in s: a plain number, ``90m``, ``12h`` or ``30d``.

    Raises:
        SpecError: it is no number, negative or not finite.
    """
    return seconds("", word)


def _resume_costs(word: str) -> float | str:
    """Return what resuming costs: a time, s, or one by size or by name: ``1=7/9=60``."""
    if "=" not in word:
        return span(word)
    parts = []
    for part in word.split("/"):
        name, _, cost = part.rpartition("=")
        if not name.strip():
            raise ValueError(
                f"found {word!a}; expected a time, or one by GPUs (1=7/2=30/9=60) or by what "
                "runs (bert=20/*=5)."
            )
        parts.append(f"{name.strip()}={span(cost):g}")
    return "/".join(parts)


def _window(word: str) -> tuple[float, float]:
    parts = word.split(":")
    if len(parts) != 2:  # noqa: PLR2004 - start and end
        raise ValueError(f"found {word!a}; expected START:END, such as 2d:3d.")
    start, end = map(span, parts)
    if not start < end:
        raise ValueError(f"found {word!a}; expected a start before its end.")
    return start, end


def _type_names(word: str) -> tuple[str, ...] | None:
    """Return GPU types joined by commas; ``all`` is no choice, ``none`` an empty one."""
    if word == "all":
        return None
    return () if word == "none" else tuple(listed(word))


#: A time span in s; one as ``START:END``; a number from 1 on; a file.
TIME, WINDOW = Parsed("time", span), Parsed("window", _window)
COUNT, FILE = click.IntRange(min=1), click.Path(path_type=Path)


def listed(text: str) -> list[str]:
    """Return words that commas separate."""
    return [word.strip() for word in text.split(",") if word.strip()]


def each_once(text: str, option: str, check: Callable[[str], Any]) -> list[str]:
    """Return names that commas separate, each checked.

    Raises:
        SpecError: there are none, or one is there twice.
    """
    names = listed(text)
    for name in names:
        check(name)
    if not names or len(set(names)) < len(names):
        raise SpecError(option, f"found {quote(text)}; expected names, each once.")
    return names


def one_of(*words: str) -> Parsed:
    """Return the type of one of a few words; a wrong one is answered with the nearest."""

    def parse(word: str) -> str:
        if word not in words:
            hint = nearest(word, words)
            raise ValueError(f"found {quote(word)}; expected {' or '.join(words)}.{hint}")
        return word

    return Parsed("word", parse)


def option(
    names: str, help_text: str, kind: Any = None, *, dest: str = "", **more: Any
) -> Callable[[Command], Command]:
    """Return an option as a usage line writes it, with its default behind its help.

    Args:
        names: its flags, and what stands for its value: ``--seeds N``.
        help_text: its help.
        kind: its type; None = text.
        dest: the parameter; empty = by the flag.
        more: as for `click.option`.
    """
    words = names.split()
    metavar = None if words[-1].startswith("-") else words.pop()
    words += [dest] if dest else []
    default = more.get("default")
    is_seconds = kind is TIME and isinstance(default, float)
    shown = {"metavar": metavar, "show_default": default is not None and not is_seconds}
    if is_seconds:
        help_text = f"{help_text}  [default: {default:g} s]"
    return click.option(*words, type=kind, help=help_text, **shown | more)


def flag(name: str, help_text: str, dest: str = "") -> Callable[[Command], Command]:
    """Return an option that is there or not."""
    return option(name, help_text, dest=dest, is_flag=True)


def together(*adds: Callable[..., Any]) -> Callable[[Command], Command]:
    """Return what adds several arguments and options, in the order of the help."""
    return lambda command: functools.reduce(lambda made, add: add(made), reversed(adds), command)


def word_option(name: str, *words: str, help_text: str) -> Callable[[Command], Command]:
    """Return an option that takes one of a few words, the first by default."""
    return option(f"{name} {'|'.join(words)}", help_text, one_of(*words), default=words[0])


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


def lazy_group(
    short: str, kind: type[LazyGroup] = LazyGroup, **homes: str
) -> Callable[[Callable[[], None]], click.Group]:
    """Return what makes a function, for its help, a group of commands.

    Args:
        short: what the help above it says of the group.
        kind: of group.
        homes: command, with underscores for hyphens -> the module of `windtunnel.cli` that has it.
    """
    named = {name.replace("_", "-"): f"windtunnel.cli.{home}" for name, home in homes.items()}
    made: Any = click.group(cls=kind, homes=named, short_help=short)
    return lambda function: made(debug_option(function))


def output_options(command: Command) -> Command:
    """Add what every command takes: ``--json`` (as ``as_json``) and ``--debug``."""
    as_json = flag("--json", "Print one JSON object and nothing else.", dest="as_json")
    return as_json(debug_option(command))


#: `windtunnel.schema.BAD_ROWS`, which is not imported here: it needs Arrow.
BAD_ROWS = ("raise", "drop")


#: The options of `reading_options`, by the names of their values.
READING = ("reader", "zone", "bad_rows")


def trace_options(command: Command) -> Command:
    """Add TRACE and what says how to read it."""
    return click.argument("trace", metavar="TRACE")(reading_options(command))


#: Add what says how to read a trace; what makes one stands in its name.
reading_options = together(
    option(
        "--format FORMAT",
        "File format, where name and content do not tell.",
        dest="reader",
    ),
    option("--zone ZONE", "Time zone of the file's clock, as in Europe/Berlin."),
    option(
        "--bad-rows raise|drop",
        "Rows that break a rule: refuse the file, or leave them out, counted.  [default: raise]",
        one_of(*BAD_ROWS),
    ),
)


def seed_option(help_text: str) -> Callable[[Command], Command]:
    """Return the option ``--seed`` with its meaning for the command."""
    return option("--seed N", help_text, click.IntRange(min=0))


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


def field_option(name: str, help_text: str | None = None) -> Callable[[Command], Command]:
    """Return the option for a field of a run, as `windtunnel.site` describes it.

    Args:
        name: of the field.
        help_text: what the command's help says of it instead.
    """
    field = FIELDS[name]
    text = field.help if help_text is None else help_text
    # What names a seed is kept apart from 0: some traces are made with it, others refuse it.
    quiet = None if field.kind == "seed" else QUIET[name]
    default = "" if field.kind == "flag" else field.default_text(QUIET[name])
    if default:
        text = f"{text}  [default: {default}]"
    if field.kind == "flag":
        return click.option(
            f"--{name.replace('_', '-')}",
            name,
            cls=SectionOption,
            section=field.section,
            is_flag=True,
            help=text,
        )
    words = [f"--{name.replace('_', '-')}"] + (["--site"] if name == "cluster" else [])
    kinds: dict[str, Any] = {
        "word": one_of(*field.words),
        "time": TIME,
        "cost": Parsed("cost", _resume_costs),
        "names": Parsed("types", _type_names),
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


def kueue_option(command: Command) -> Command:
    """Add ``--kueue``, the manifests of policy ``kueue``."""
    return option("--kueue DIR|FILE.yaml", "Kueue's manifests, for policy kueue.")(command)


#: The fields that are options of the commands that fly a trace, in the order of their help.
FLIGHT: tuple[str, ...] = tuple(
    name for name, field in FIELDS.items() if field.is_option and name != "policy"
)


#: Options longer than this have a line of their own in the help.
_OPTION_WIDTH = 25


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
                    formatter.write_dl(rows[section], col_max=_OPTION_WIDTH)


def _section_of(param: click.Parameter) -> str:
    if isinstance(param, SectionOption):
        return param.section
    if param.name in {"policy", "policies", "kueue"}:
        return "scheduler"
    return "trace" if param.name in READING else "output"


def out_option(metavar: str, help_text: str) -> Callable[[Command], Command]:
    """Return the option ``--out``, a file."""
    return option("--out", help_text, FILE, metavar=metavar)
