"""A call of the command, drawn from a seed: any command, its options, files of any format, mutated.

The grammar is the command's own: commands and options are those that click knows; values are drawn
by what an option takes, from words that are right, nearly right, and far too large.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

sys.path.insert(0, str(Path(__file__).parent.parent / "malformed"))

from catalogue import SAMPLES

from windtunnel.cli.root import windtunnel

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Those that need the network, serve, or fly published workloads for minutes whatever is asked.
_LEFT_OUT = frozenset({"lab", "fetch", "demo", "figures", "sweep", "morphling", "tune"})
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
#: What options that take words of their own take; by the option's name.
_WORDS: dict[str, tuple[str, ...]] = {
    "cluster": (
        "2x4",
        "4x8:A100",
        "pool:8",
        "v100:4,k80:2",
        "8x8:A100,4x4:T4",
        "4x99999999",
        "pool:99999999999999999999",
        "0x8",
        "-1x8",
        "1000001x8",
        "2x4:",
        "CLUSTER",
        "philly",
    ),
    "policy": (
        "fifo",
        "sjf",
        "srtf",
        "las",
        "las:quantum=1e-3",
        "tiresias",
        "fair-share",
        "edf",
        "multifactor",
        "quota",
        "gavel:max_min_fairness",
        "srtf:x=1",
        "morphling",
        "wfp3",
        "aging",
    ),
    "policies": ("fifo,sjf", "fifo,srtf,las", "fifo,fifo", "", "srtf,quota", "sjf,nope"),
    "queueing": ("strict", "skip", "easy", "easy_sjbf", "conservative", "slurm"),
    "placement": ("best_fit", "spread", "pool", "first_fit", "fgd", "random", "fgd:gang=fill"),
    "disruptions": ("mtbf:30d/mttr:4h", "mtbf:1/mttr:1000d", "mtbf:1e-9/mttr:1", "mtbf:1d"),
    "slowdown": ("spread=0.42", "spread=0.42,rack=0.8,share=0.9,cpu=0.28", "spread=1e300"),
    "node_sleep": ("earth", "earth,step=1e-3", "venus,wake_time=5m", "saturn,buffer=1e300"),
    "shift": ("series=SERIES,max_delay=12h", "series=SERIES,max_delay=1e300", "max_delay=1h"),
    "power": ("POWER", "CLUSTER"),
    "power_cap": ("900", "1e300", "1kW", "SERIES", "1e13", "450"),
    "carbon": ("400", "SERIES", "1e308", "-1"),
    "tariff": ("0.25", "SERIES"),
    "arrivals": ("300/60", "1e9/1e-9", "1/0"),
    "estimates": ("recorded", "perfect", "cart"),
    "save_time": ("7", "1=7/2=30", "bert=20/*=5", "=1"),
    "restore_time": ("7", "*=1e300", "1=7"),
    "zone": ("UTC", "Europe/Berlin", "../../etc/passwd", "Mars/Phobos"),
}
_CELLS = (*NUMBERS, *_SPANS, *_NAMES, "a|b", "A100", "2017-10-09 07:00:00", '"', "\x00", "=1+1")


@dataclass(frozen=True)
class Call:
    """A call of the command.

    Attributes:
        words: its words; the first may be a command's name.
        files: what it may read: name -> content; words name them alone.
    """

    words: tuple[str, ...]
    files: dict[str, bytes]


def drawn(seed: str, number: int) -> Call:
    """Return a call; the same seed and number, the same call."""
    draw = random.Random(f"{seed}:{number}")  # noqa: S311 - no secret
    files = {
        "POWER": b"[gpus.default]\nidle_w = 50\nactive_w = 250\n",
        "SERIES": b"time,value\n0,100\n3600,200\n7200,100\n",
        "CLUSTER": b'name = "c"\n[[node_types]]\ncount = 2\ngpus = 4\n',
        "study.toml": b'policies=["fifo"]\nclusters=["2x4"]\n[[traces]]\ntrace="jobs.csv"\n',
        "jobs.csv": _jobs(draw),
    }
    for name in list(files):
        if draw.random() < 0.15:
            files[name] = _mutated(draw, files[name])
    words, command = _command(draw)
    for param in command.params:
        words += _given(draw, param, files)
    return Call(tuple(words), files)


def _command(draw: random.Random) -> tuple[list[str], click.Command]:
    words: list[str] = []
    command: click.Command = windtunnel
    while isinstance(command, click.Group):
        context = click.Context(command)
        name = draw.choice([n for n in command.list_commands(context) if n not in _LEFT_OUT])
        if not words and draw.random() < 0.4:
            name = "simulate"
        found = command.get_command(context, name)
        assert found is not None
        words.append(name)
        command = found
    return words, command


def _given(draw: random.Random, param: click.Parameter, files: dict[str, bytes]) -> Iterator[str]:
    """Yield the words that give an argument, or an option where it is given."""
    name = str(param.name)
    if isinstance(param, click.Argument):
        for _ in range(1 if param.nargs != -1 else draw.randrange(1, 3)):
            yield _argument(draw, name, files)
        return
    wanted = {"cluster": 0.9, "policies": 0.7, "policy": 0.6, "workers": 1.0, "jobs": 0.0}
    if name in {"help", "debug"} or draw.random() > wanted.get(name, 0.05):
        return
    option = next((word for word in param.opts if word.startswith("--")), param.opts[0])
    yield option
    if not getattr(param, "is_flag", False):
        for _ in range(max(param.nargs, 1)):
            yield _value(draw, name, param.type)


def _argument(draw: random.Random, name: str, files: dict[str, bytes]) -> str:
    if name not in {"trace", "source", "log", "traces"} or draw.random() < 0.5:
        return draw.choice(("jobs.csv", "jobs.csv", "study.toml", "out.csv", "POWER", "OUT"))
    if draw.random() < 0.3:
        what = draw.choice(("kalos", "seren", "philly", "gavel", "nope"))
        return f"synthetic:{what}:jobs=" + draw.choice(("40", "200", "0", "-1", "1e3", "x"))
    sample = SAMPLES[draw.choice(sorted(SAMPLES))]
    where = Path(f"sample{len(files)}") / (getattr(sample, "file", "") or "log.csv")
    files[str(where)] = _mutated(draw, sample.data)
    return str(where)


def _value(draw: random.Random, name: str, kind: Any) -> str:
    if name in {"out", "timeline"} or isinstance(kind, click.Path):
        return draw.choice(("out.html", "out.csv", "out.parquet", "out.json", "no/out.csv", "out"))
    if name == "workers":
        # Not more: calls are made in forks, in which a pool of processes may wait for ever.
        return draw.choice(("1", "1", "0", "-1", "x"))
    chance = draw.random()
    words = _WORDS.get(name, ())
    if not words and isinstance(kind, click.Choice):
        words = tuple(kind.choices)
    words = words or getattr(kind, "_words", ())
    if words and chance < 0.85:
        return draw.choice(words)
    number = isinstance(kind, click.types.IntParamType | click.types.FloatParamType)
    if chance < (0.95 if number else 0.6):
        return draw.choice((*NUMBERS, *_SPANS))
    return draw.choice(_NAMES)


def _jobs(draw: random.Random) -> bytes:
    """Return a jobs table of a few rows, some of whose cells are odd."""
    columns = ["job_id", "submit_time", "duration", "num_gpus"]
    more = ["user", "vc", "gpu_type", "estimate", "priority", "num_cpus", "mem_gib", "deadline"]
    columns += draw.sample(more, draw.randrange(5))
    rows = [",".join(columns)]
    odd = draw.random() < 0.3
    for number in range(draw.randrange(1, 30)):
        cells = [str(number), str(number * draw.randrange(100)), str(draw.randrange(1, 5000))]
        cells += [draw.choice("1248")]
        cells += [draw.choice(("a", "b", "10", "")) for _ in columns[4:]]
        if odd and draw.random() < 0.2:
            cells[draw.randrange(len(cells))] = draw.choice(_CELLS)
        rows.append(",".join(cells))
    return "\n".join([*rows, ""]).encode("utf-8", "surrogatepass")


def _mutated(draw: random.Random, data: bytes) -> bytes:
    """Return a file's content, changed in a few places."""
    for _ in range(draw.randrange(4)):
        at = draw.randrange(len(data) + 1)
        size = draw.choice((0, 1, 2, 8, 64))
        piece = draw.choice(_CELLS).encode("utf-8", "surrogatepass")
        piece = draw.choice((piece, b"", b"\n", b",", b"\xff", data[:at], data[at : at + 200]))
        data = data[:at] + piece[:20_000] + data[at + size :]
    return data
