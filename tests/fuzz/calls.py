"""A call of the command, drawn from a seed: any command, its options, files of any format, mutated.

The grammar is the command's own: commands and options are those that click knows; values are drawn
by what an option takes, from words that are right, nearly right, and far too large.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

sys.path.insert(0, str(Path(__file__).parent.parent / "malformed"))

from catalogue import SAMPLES
from right import ARGUMENTS, BESIDE, FILES, WORDS, right

from windtunnel.cli.root import windtunnel

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Those that need the network, serve, or fly published workloads for minutes whatever is asked.
_LEFT_OUT = frozenset(
    {"lab", "fetch", "demo", "gavel sweep", "morphling compare", "gavel makespan"}
)
NUMBERS = (
    *("0", "1", "2", "3", "8", "100", "-1", "0.5", "1e-3", "1e-300", "1e15", "1e300", "1e308"),
    *("nan", "inf", "-inf", "-0.0", "99999999", "2147483648", "9223372036854775808"),
    *("18446744073709551615", "18446744073709551616", "9" * 40, "1e999", "0x10", "1_000", "٣"),
)
_SPANS = ("30s", "90m", "12h", "30d", "1e300d", "0d", "-1h", "1e-9s", "d", "12 h", "nand")
_NAMES = (
    *("", "x", "x" * 10_000, "../x", "a:b", "os:system", "../x:f", "..:f", ":", "=", ",", "/"),
    *(
        "\x1b[31mred",
        "<script>",
        "\u202e",
        "%s%n",
        "{0}",
        "$(id)",
        "-",
        "--",
        "None",
        "all",
        "none",
    ),
)
_CELLS = (*NUMBERS, *_SPANS, *_NAMES, "a|b", "A100", "2017-10-09 07:00:00", '"', "\x00", "=1+1")


#: What stands in further columns of a jobs table.
_MORE = {
    "user": "a b c ",
    "vc": "a b",
    "gpu_type": "A100 T4 ",
    "estimate": "10 600 7200 ",
    "priority": "0 1 10",
    "num_cpus": "0 4 32",
    "mem_gib": "0 16 256.5",
    "deadline": "3000 9000000 ",
    "state": "completed failed cancelled",
    "template": "bert gpt2 ",
    "partition": "a",
    "nodes": "1 2",
}


@dataclass(frozen=True)
class Call:
    """A call of the command.

    Attributes:
        words: its words; the first may be a command's name.
        files: what it may read: name -> content; words name them alone.
        rows: jobs in ``jobs.csv``; None = nobody can tell, as it was changed or has quotes.
        world: where it is made; empty = where nothing is amiss.
    """

    words: tuple[str, ...]
    files: dict[str, bytes]
    rows: int | None = None
    world: str = ""


#: Those that start processes, which are new interpreters: a fork of a fuzzer cannot.
_OF_PROCESSES = frozenset({("study", "run"), ("study", "tune"), ("bench",)})
#: Those that take seconds each, and are called less often.
_LONG = _OF_PROCESSES | {("figures",)}
#: Unlucky ones: an interpreter of its own in an empty environment and another locale; a disk that
#: is full after so many bytes; streams that are closed, or full; little memory, few open files.
WORLDS = ("own", "disk", "no stdout", "no stderr", "full stdout", "memory", "files")


class Draw(random.Random):
    """Draws of one call, of which most are tame: odd things are rare in them.

    Args:
        seed: the same one, the same draws.
    """

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.wild = self.choice((0.0, 0.03, 0.06, 0.15, 1.0))

    def odd(self, share: float = 1.0) -> bool:
        """Return whether something is to be odd; ``share``: how often it is where all is wild."""
        return self.random() < share * self.wild


def drawn(seed: str, number: int) -> Call:
    """Return a call; the same seed and number, the same call."""
    draw = Draw(f"{seed}:{number}")
    files = {**FILES, "jobs.csv": _jobs(draw)}
    whole = files["jobs.csv"]
    if draw.odd(0.3):
        files["jobs.csv"] = _mutated(draw, whole)
    countable = files["jobs.csv"] == whole and b'"' not in whole
    names, command = _command(draw)
    words = [*names, *_given(draw, names, command, files)]
    asked = {part for word in words for part in word.replace("#", ",").split(",")}
    for name in sorted(
        asked & set(FILES) | {name for name in FILES if name.split("/")[0] in asked}
    ):
        if draw.odd(0.7):
            files[name] = _mutated(draw, files[name])
    rows = whole.count(b"\n") - 1 if countable else None
    world = draw.choice(WORLDS) if draw.random() < 0.15 else ""
    if names in _OF_PROCESSES:
        world = "own"
    return Call(tuple(words), files, rows, world)


def commands(
    group: click.Group = windtunnel, names: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command that is called, with the words that name it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, (*names, name))
        elif " ".join((*names, name)) not in _LEFT_OUT:
            yield (*names, name), found


_COMMANDS: list[tuple[tuple[str, ...], click.Command]] = []


def _command(draw: Draw) -> tuple[tuple[str, ...], click.Command]:
    if not _COMMANDS:
        _COMMANDS.extend(commands())
    if draw.random() < 0.35:
        return next(found for found in _COMMANDS if found[0] == ("simulate",))
    while True:
        found = draw.choice(_COMMANDS)
        if found[0] not in _LONG or draw.random() < 0.1:
            return found


#: Never given: who allows what is large waits for it; a call in a fork may not start processes.
_NEVER = frozenset({"help", "debug", "allow_large", "processes"})
#: How often an option is given; 0.06 where none is stated.
_OFTEN = {"cluster": 0.95, "policies": 0.7, "policy": 0.5, "workers": 1.0, "as_json": 0.5}
#: These are of use for a few traces or policies alone.
_OFTEN |= dict.fromkeys(("zone", "reader", "models", "throughputs", "compat", "kueue"), 0.015)


def _given(
    draw: Draw, names: tuple[str, ...], command: click.Command, files: dict[str, bytes]
) -> list[str]:
    """Return the words behind a command's name: arguments, options, and what these need beside."""
    words: list[str] = []
    called = " ".join(names)
    needs = [called] if called in BESIDE else []
    for param in command.params:
        name = str(param.name)
        if isinstance(param, click.Argument):
            count = 1 if param.nargs != -1 else draw.randrange(1, 3)
            words += [_argument(draw, called, name, files) for _ in range(count)]
            continue
        chance = _OFTEN.get(name, 1.0 if param.required else 0.06)
        if name in _NEVER or draw.random() > chance:
            continue
        needs += [name] if name in BESIDE else []
        words.append(next((word for word in param.opts if word[:2] == "--"), param.opts[0]))
        if not getattr(param, "is_flag", False):
            words += [_value(draw, names[0], param) for _ in range(max(param.nargs, 1))]
    known = {word for param in command.params for word in param.opts}
    for name in needs:
        more = draw.choice(BESIDE[name]).split()
        if more[0] in known and more[0] not in words and not draw.odd(0.5):
            words += more
    return words


def _argument(draw: Draw, called: str, name: str, files: dict[str, bytes]) -> str:
    first = called.split(maxsplit=1)[0]
    usual = ARGUMENTS.get(f"{called} {name}", ARGUMENTS.get(called, ARGUMENTS.get(first)))
    if not draw.odd(0.8):
        if usual is not None:
            return usual
        what = draw.choice(("kalos", "seren", "philly"))
        return draw.choice(("jobs.csv", "jobs.csv", "jobs.csv", f"synthetic:{what}:jobs=40"))
    if draw.random() < 0.3:
        return draw.choice((*sorted(files), "out.csv", "OUT"))
    if draw.random() < 0.3:
        what = draw.choice(("kalos", "seren", "philly", "gavel", "nope"))
        return f"synthetic:{what}:jobs=" + draw.choice(("40", "200", "0", "-1", "1e3", "x"))
    sample = SAMPLES[draw.choice(sorted(SAMPLES))]
    folder = Path(f"sample{len(files)}")
    where = folder / (getattr(sample, "file", "") or "log.csv")
    files.update({str(folder / beside): data for beside, data in dict(sample.beside).items()})
    files[str(where)] = _mutated(draw, sample.data)
    return str(draw.choice((where, where, folder)))


def _value(draw: Draw, first: str, param: click.Parameter) -> str:
    """Return what an option is given; ``first``: the first word of the command's name."""
    name = str(param.name)
    if isinstance(param.type, click.Path) and draw.odd(0.5):
        return draw.choice(("out.html", "out.parquet", "out.json", "no/out.csv", "out", "out.toml"))
    # Not more workers: calls are made in forks, in which a pool of processes may wait for ever.
    if name == "workers" or not draw.odd(0.3):
        return draw.choice(right(param, first) or ["1"])
    odd = WORDS.get(name, ("", ""))[1].split()
    if odd and draw.random() < 0.5:
        return draw.choice(odd)
    return draw.choice((*NUMBERS, *_SPANS) if draw.random() < 0.7 else _NAMES)


def _jobs(draw: Draw) -> bytes:
    """Return a jobs table of a few rows, some of whose cells are odd."""
    columns = ["job_id", "submit_time", "duration", "num_gpus"]
    columns += draw.sample(sorted(_MORE), draw.randrange(6))
    columns += ["start_time", "end_time"] if draw.random() < 0.5 else []
    rows = [",".join(columns)]
    odd = draw.odd(0.5)
    for number in range(draw.randrange(1, 30)):
        cells = [str(number), str(number * draw.randrange(100)), str(draw.randrange(1, 5000))]
        cells += [draw.choice("1248")]
        start = int(cells[1]) + draw.randrange(1000)
        times = {"start_time": start, "end_time": start + int(cells[2])}
        for name in columns[4:]:
            cells.append(str(times[name]) if name in times else draw.choice(_MORE[name].split(" ")))
        if odd and draw.random() < 0.2:
            cells[draw.randrange(len(cells))] = draw.choice(_CELLS)
        rows.append(",".join(cells))
    return "\n".join([*rows, ""]).encode("utf-8", "surrogatepass")


def _mutated(draw: Draw, data: bytes) -> bytes:
    """Return a file's content, changed in a few places."""
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(data) + 1)
        size = draw.choice((0, 1, 2, 8, 64))
        piece = draw.choice(_CELLS).encode("utf-8", "surrogatepass")
        piece = draw.choice((piece, b"", b"\n", b",", b"\xff", data[:at], data[at : at + 200]))
        data = data[:at] + piece[:20_000] + data[at + size :]
    return data
