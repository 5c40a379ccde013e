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
#: What options that take words of their own take, by the option's name: right ones, odd ones.
_WORDS: dict[str, tuple[str, str]] = {
    "cluster": (
        "2x4 4x8:A100 64x8 pool:8 v100:4,k80:2 8x8:A100,4x4:T4 c.toml",
        "4x99999999 pool:99999999999999999999 0x8 -1x8 1000001x8 2x4:",
    ),
    "policy": (
        "fifo sjf srtf las tiresias fair-share multifactor srsf las:quantum=0.1 gavel:fifo",
        "las:quantum=1e-3 quota edf srtf:x=1 morphling gavel:x sia:every=1 multifactor:every=1e-6",
    ),
    "policies": ("fifo,sjf fifo,srtf,las tiresias,srsf", "fifo,fifo srtf,quota sjf,nope"),
    "queueing": ("strict skip easy easy_sjbf conservative", "slurm x"),
    "placement": ("best_fit spread pool first_fit fgd random fgd:gang=fill worst_fit", "x fgd:x=1"),
    "disruptions": (
        "mtbf:30d/mttr:4h mtbf:1h/mttr:10m/checkpoint:5m mtbf:12h/mttr:1h/on_failure:end",
        "mtbf:1/mttr:1000d mtbf:1e-9/mttr:1 mtbf:1d mtbf:1e300d/mttr:1e300d",
    ),
    "slowdown": ("spread=0.42 spread=0.42,rack=0.8,share=0.9,cpu=0.28", "spread=1e300 rack=0"),
    "node_sleep": ("earth venus,wake_time=5m", "earth,step=1e-3 saturn,buffer=1e300"),
    "shift": (
        "series=SERIES,max_delay=12h series=SERIES,max_delay=2h",
        "series=SERIES,max_delay=1e300 max_delay=1h series=POWER,max_delay=1h",
    ),
    "power": ("POWER", "c.toml"),
    "power_cap": ("900 1kW 2000 450", "1e300 SERIES 1e13 0"),
    "carbon": ("400 SERIES", "1e308 -1"),
    "tariff": ("0.25 SERIES", "1e308 POWER"),
    "arrivals": ("300/60 poisson recorded", "1e9/1e-9 1/0"),
    "estimates": ("recorded perfect cart", "nope"),
    "save_time": ("7 1=7/2=30 bert=20/*=5", "=1 1e300"),
    "restore_time": ("7 1=7", "*=1e300"),
    "zone": ("UTC Europe/Berlin", "../../etc/passwd Mars/Phobos"),
    "metrics": ("", "nope a,b"),
    "seed": ("0 1 7", "18446744073709551615 18446744073709551616"),
    "until": ("1000 1h 30d", "1e300 -1"),
    "decide_every": ("60 5m", "1e-9 1e300"),
    "rate": ("1 20", "2e7 1e300"),
    "over": ("rate=1,2 cv=1,4", "rate=1e9 x=1"),
    "gpus": ("1 2 8", "99999999"),
    "workload": ("shufflenet bert_sa", "x"),
    "reader": ("", "jobs philly gavel x"),
    "quotas": ("", "POWER"),
    "penalty": ("", "7"),
    "compat": ("", "gavel pollux slurm"),
    "workers": ("1", "0 -1 x"),
}
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
    "nodes": "1 2",
}


@dataclass(frozen=True)
class Call:
    """A call of the command.

    Attributes:
        words: its words; the first may be a command's name.
        files: what it may read: name -> content; words name them alone.
        rows: jobs in ``jobs.csv``; None = nobody can tell, as it was changed or has quotes.
    """

    words: tuple[str, ...]
    files: dict[str, bytes]
    rows: int | None = None


class Draw(random.Random):
    """Draws of one call, of which most are tame: odd things are rare in them.

    Args:
        seed: the same one, the same draws.
    """

    def __init__(self, seed: str) -> None:
        super().__init__(seed)
        self.wild = self.choice((0.05, 0.05, 1.0))

    def odd(self, share: float = 1.0) -> bool:
        """Return whether something is to be odd; ``share``: how often it is where all is wild."""
        return self.random() < share * self.wild


def drawn(seed: str, number: int) -> Call:
    """Return a call; the same seed and number, the same call."""
    draw = Draw(f"{seed}:{number}")
    files = {
        "POWER": b"[gpus.default]\nidle_w = 50\nactive_w = 250\n",
        "SERIES": b"time,value\n0,100\n3600,200\n7200,100\n",
        "c.toml": b'name = "c"\n[[node_types]]\ncount = 2\ngpus = 4\n',
        "study.toml": b'policies=["fifo"]\nclusters=["2x4"]\n[[traces]]\ntrace="jobs.csv"\n',
        "jobs.csv": _jobs(draw),
    }
    whole = files["jobs.csv"]
    for name in list(files):
        if draw.odd(0.3):
            files[name] = _mutated(draw, files[name])
    countable = files["jobs.csv"] == whole and b'"' not in whole
    words, command = _command(draw)
    for param in command.params:
        words += _given(draw, param, files)
    if {"--carbon", "--tariff", "--power-cap"} & set(words) and not draw.odd(0.5):
        words += ["--power", "POWER"]
    return Call(tuple(words), files, whole.count(b"\n") - 1 if countable else None)


def _command(draw: Draw) -> tuple[list[str], click.Command]:
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


#: What is right where a kind of number is wanted.
_RIGHT = {
    "integer": ("1", "2", "8"),
    "integer range": ("1", "2", "8"),
    "float": ("0.5", "2", "100"),
    "float range": ("0.5", "2", "100"),
    "time": ("30s", "12h", "600"),
    "window": ("0:1h", "100:2000"),
    "cost": ("7",),
}


def _given(draw: Draw, param: click.Parameter, files: dict[str, bytes]) -> Iterator[str]:
    """Yield the words that give an argument, or an option where it is given."""
    name = str(param.name)
    if isinstance(param, click.Argument):
        for _ in range(1 if param.nargs != -1 else draw.randrange(1, 3)):
            yield _argument(draw, name, files)
        return
    wanted = {"cluster": 0.9, "policies": 0.7, "policy": 0.6, "workers": 1.0, "jobs": 0.0}
    wanted["as_json"] = 0.5  # of which what was counted is judged
    chance = wanted.get(name, 1.0 if param.required else 0.06)
    # Whoever allows what is large waits for it.
    if name in {"help", "debug", "allow_large"} or draw.random() > chance:
        return
    known = name in _WORDS or isinstance(param.type, click.Path) or param.type.name in _RIGHT
    known = known or bool(getattr(param.type, "_words", ()))
    flag = bool(getattr(param, "is_flag", False))
    if not (known or flag or param.required) and not draw.odd():
        return
    option = next((word for word in param.opts if word.startswith("--")), param.opts[0])
    yield option
    if not flag:
        for _ in range(max(param.nargs, 1)):
            yield _value(draw, name, param.type)


def _argument(draw: Draw, name: str, files: dict[str, bytes]) -> str:
    if name in {"trace", "traces"} and not draw.odd(0.8):
        what = draw.choice(("kalos", "seren", "philly"))
        return draw.choice(("jobs.csv", "jobs.csv", f"synthetic:{what}:jobs=40"))
    if name == "file" and not draw.odd(0.5):
        return "study.toml"
    if name not in {"trace", "source", "log", "traces"} or draw.random() < 0.5:
        return draw.choice(("jobs.csv", "jobs.csv", "study.toml", "out.csv", "POWER", "OUT"))
    if draw.random() < 0.3:
        what = draw.choice(("kalos", "seren", "philly", "gavel", "nope"))
        return f"synthetic:{what}:jobs=" + draw.choice(("40", "200", "0", "-1", "1e3", "x"))
    sample = SAMPLES[draw.choice(sorted(SAMPLES))]
    where = Path(f"sample{len(files)}") / (getattr(sample, "file", "") or "log.csv")
    files[str(where)] = _mutated(draw, sample.data)
    return str(where)


def _value(draw: Draw, name: str, kind: Any) -> str:
    if name in {"out", "timeline"} or isinstance(kind, click.Path):
        if not draw.odd(0.5):
            return "out.html" if name == "timeline" else draw.choice(("out.csv", "out.html"))
        return draw.choice(("out.html", "out.parquet", "out.json", "no/out.csv", "out"))
    right, odd = (words.split() for words in _WORDS.get(name, ("", "")))
    if isinstance(kind, click.Choice):
        right = list(kind.choices)
    right = right or list(getattr(kind, "_words", ()))
    # Not more workers: calls are made in forks, in which a pool of processes may wait for ever.
    if name == "workers" or not draw.odd(0.3):
        return draw.choice(right or _RIGHT.get(kind.name, ("1",)))
    if odd and draw.random() < 0.5:
        return draw.choice(odd)
    return draw.choice((*NUMBERS, *_SPANS) if draw.random() < 0.7 else _NAMES)


def _jobs(draw: Draw) -> bytes:
    """Return a jobs table of a few rows, some of whose cells are odd."""
    columns = ["job_id", "submit_time", "duration", "num_gpus"]
    columns += draw.sample(sorted(_MORE), draw.randrange(6))
    rows = [",".join(columns)]
    odd = draw.odd(0.5)
    for number in range(draw.randrange(1, 30)):
        cells = [str(number), str(number * draw.randrange(100)), str(draw.randrange(1, 5000))]
        cells += [draw.choice("1248")]
        cells += [draw.choice(_MORE[name].split(" ")) for name in columns[4:]]
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
