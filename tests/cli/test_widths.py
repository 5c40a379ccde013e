"""Every number that a command tells stands whole in a terminal of 60, 80 and 160 characters."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pytest

from windtunnel.cli import presenting
from windtunnel.cli.compare import compare
from windtunnel.cli.root import windtunnel
from windtunnel.cli.simulate import simulate
from windtunnel.schema import as_jobs
from windtunnel.traces.native import write_csv
from windtunnel.traces.sacct_writer import write_sacct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

WIDTHS = (60, 80, 160)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_QUICK = (
    "compare log.csv --cluster 2x8 --policies fifo,sjf,srtf",
    "simulate log.csv --cluster 2x8",
    "report queue log.csv --cluster 2x8",
    "gavel makespan --counts 4 --policies fifo_perf",
    "throughput curve t5 --gpus 1..8",
    "gavel allocate instance.json --policy max_min_fairness_perf",
    "throughput losses losses.csv",
    "fit log.csv --out twin.toml",
    "why run.parquet --job 1000007",
    "serving evaluate cases.jsonl",
)
_SLOW = (
    "report log.csv --cluster 2x8 --price 2.5",
    "report waste log.csv",
    "report cost log.csv --price 2.5",
    "predict wait log.csv --gpus 2",
    "predict durations log.csv --model rolling,sju,sjg,requested",
    "predict effect log.csv --cluster 2x8 --loads 1 --aging 1 --no-reservations --model oracle,sjg",
    "validate log.csv --policies fifo --cluster 2x8",
    "whatif log.csv --nodes +1 --cluster 2x8 --price 1 --anyway",
    "describe log.csv",
    "throughput plan",
    "throughput allocate t5 roberta --gpus 4",
    "throughput errors llama7",
    "energy optimum --workload synthetic",
    "energy optimum --workload synthetic --gpu all",
    "energy simulate --workload synthetic --recurrences 10 --seeds 2",
    "energy groups synthetic --workload synthetic",
    "pack 2x8 log.csv --placement best_fit,random --seeds 2",
    "gavel sweep --policies fifo_perf --rates 2 --measure 2:6",
    "traces",
    "plan reliability log.csv --cluster 3x8 --disruptions mtbf:30d/mttr:8h/cost:2m/restart:5m",
    "plan reliability --gpus 512 --work 5d --disruptions mtbf:30d/mttr:8h/cost:2m/restart:5m",
    "report goodput log.csv",
    "serving llm requests.csv --ttft 1 --tpot 0.1",
    "serving llm-sweep requests.csv --over rate=1,2 --ttft 1 --price 2.5",
    "serving llm-sweep requests.csv --dispatch least_loaded,round_robin --price 2.5",
    "serving llm-capacity requests.csv --ttft 10",
    "bench",
    "convert log.csv log.swf",
    "demo --trace synthetic:kalos --out out",
    "figures log.csv --out out",
    "learn log.txt --out learnt.toml",
    "study run STUDY.toml --out out",
    "study show flown",
    "study compare flown",
    "study tune STUDY.toml --out out",
    "gavel timeline --hours 3",
    "throughput fit points.csv --out fitted.json",
    "morphling compare --traces log.csv --penalties 260 --policies fixed-plan,morphling",
    "serving workload workload.toml",
    "serving search workload.toml --gpus 4",
    "serving simulate workload.toml --policy sr --gpus 4",
    "serving capacity workload.toml --policy sr",
    "serving sweep workload.toml --policy sr --gpus 4 --over rate=5,15",
    "serving replace workload.toml --policy sr --gpus 4 --every 20s",
    "serving fleet fleet.toml --gpus 4",
    "serving llm-fit iterations.csv --kv-limit 5000",
    "serving llm-replay log.jsonl --model engine.toml",
)
#: Commands that no terminal of a test can render, and why.
_NOT_RENDERED = {
    "fetch": "downloads a published trace",
    "lab": "a server, which runs until it is stopped",
}


def _jobs() -> dict[str, Any]:
    """Return columns of jobs that waited, with large numbers and long names."""
    draw = np.random.default_rng(3)
    n = 120
    submit = np.sort(draw.uniform(0, 5 * 86_400, n)).round()
    wait = draw.choice([0.0, 900.0, 90_000.0], n)
    run = draw.uniform(60, 900_000, n).round()
    return {
        "job_id": [f"{1_000_000 + k}" for k in range(n)],
        "submit_time": submit.tolist(),
        "start_time": (submit + wait).tolist(),
        "end_time": (submit + wait + run).tolist(),
        "duration": run.tolist(),
        "estimate": [1e6] * n,
        "num_gpus": [float((1, 2, 4, 8)[k % 4]) for k in range(n)],
        "user": [f"someone-with-a-name-{k % 5}" for k in range(n)],
        "vc": [f"a-virtual-cluster-{k % 3}" for k in range(n)],
        "template": [f"template-{k % 9}" for k in range(n)],
        "status": [("completed", "failed")[k % 2] for k in range(n)],
    }


def _csv(head: str, rows: Iterable[str]) -> str:
    return "\n".join([head, *rows]) + "\n"


def _requests() -> str:
    """Return requests to a language model, one every two seconds."""
    rows = (f"{2 * k},{500 + k * 37 % 900},{50 + k * 13 % 200}" for k in range(60))
    return _csv("arrived_at,num_prefill_tokens,num_decode_tokens", rows)


def _iterations() -> str:
    """Return measured iterations of a language model."""
    counts = itertools.product((0, 64, 512), (1, 8, 64), (100, 700))
    rows = (f"{p},{d},{d * kv},{0.01 + 1e-4 * p + 1e-7 * d * kv}" for p, d, kv in counts)
    return _csv("prefill_tokens,decode_seqs,kv_tokens,iteration_time", rows)


def _served() -> str:
    """Return a log of vLLM's requests, one every two seconds."""
    rows = (
        {
            "input_toks": 50 + k,
            "output_toks": 20,
            "queued_ts": 2.0 * k,
            "first_token_ts": 2.0 * k + 0.1,
            "last_token_ts": 2.0 * k + 0.9,
        }
        for k in range(20)
    )
    return "\n".join(json.dumps(row) for row in rows) + "\n"


def _points() -> str:
    """Return measured iterations of a model that trains, under three plans."""
    times = {("ga", 1): 0.657, ("ga", 4): 0.2257, ("ga", 44): 0.21, ("zero-dp", 2): 0.3652}
    times |= {("zero-dp", 8): 0.155, ("zero-offload", 2): 0.58, ("zero-offload", 8): 0.284}
    rows = (f"{plan},{at},{time},4,32,336297858,80" for (plan, at), time in times.items())
    head = "plan,placement,iteration_time,cpu_threads,global_batch_size,parameters,gpu_memory_gib"
    return _csv(head, rows)


#: Files that commands name -> their text; log.csv and log.txt hold `_jobs`.
_TEXTS: dict[str, Callable[[], str]] = {
    "requests.csv": _requests,
    "iterations.csv": _iterations,
    "log.jsonl": _served,
    "points.csv": _points,
    "instance.json": lambda: json.dumps(
        {
            "cluster": {"v100": 1, "k80": 1},
            "jobs": [{"id": name, "throughputs": {"v100": 4, "k80": 1}} for name in "ab"],
        }
    ),
    "losses.csv": lambda: _csv(
        "iteration,loss_181,loss_811", (f"{k},{10 / k},{10 / k + 0.5}" for k in range(1, 61))
    ),
    "STUDY.toml": lambda: (
        'clusters = ["4x8"]\npolicies = ["fifo", "sjf"]\nloads = [0.9]\nseeds = 2\n'
        'traces = ["synthetic:philly:jobs=40"]\n[options]\noversize = "reject"\n'
        '[search]\nobjective = "avg_wait"\npolicy = "sjf:aging={weight}"\ntrials = 2\n'
        "[search.space]\nweight = { low = 0.1, high = 1000, log = true }\n"
    ),
    "workload.toml": lambda: "num_models = 6\nrate = 15\ncv = 3\nslo_scale = 5\nduration = 60\n",
    "engine.toml": lambda: (
        "iteration_s=0.01\nprefill_token_s=1e-4\ndecode_seq_s=0\nkv_token_s=0\nkv_limit=4000\n"
    ),
    "fleet.toml": lambda: (
        '[chat]\nmodel = "engine.toml"\nrequests = "requests.csv"\nttft = 0.5\ntpot = 0.05\n'
    ),
    "cases.jsonl": lambda: json.dumps(
        {
            "model_set": ["small"],
            "num_models": 2,
            "total_rate": 8.0,
            "duration_s": 100,
            "groups": [{"parallel": [1, 1, 2], "models": [0, 1]}],
            "slo_scale": 2,
            "goodput": 0.9,
        }
    ),
}
#: What another command writes -> that command.
_WRITTEN = {
    "run.parquet": "simulate log.csv --cluster 2x8 --record run.parquet",
    "flown": "study run STUDY.toml --out flown",
}


@pytest.fixture
def folder(
    run: Callable[..., Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The current folder, with what the command's words name."""
    monkeypatch.chdir(tmp_path)
    jobs = _jobs()
    write_csv(as_jobs(jobs), tmp_path / "log.csv")
    for name, text in _TEXTS.items():
        (tmp_path / name).write_text(text())
    if "log.txt" in words:
        names = [f"node-{k % 3}" for k in range(len(jobs["job_id"]))]
        cores = {"num_cpus": [4 * gpus for gpus in jobs["num_gpus"]]}
        write_sacct(as_jobs({**jobs, **cores, "nodelist": names}), tmp_path / "log.txt")
    for name in set(_WRITTEN) & set(words.split()):
        assert run(*_WRITTEN[name].split()).code == 0
    return tmp_path


def commands() -> set[str]:
    """Return the commands that there are, groups apart."""
    found = set()
    waiting: list[tuple[str, click.Command]] = [("", windtunnel)]
    while waiting:
        name, command = waiting.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            for one in command.list_commands(context):
                inner = command.get_command(context, one)
                assert inner is not None
                waiting.append((f"{name} {one}".strip(), inner))
        else:
            found.add(name)
    return found


def test_every_command_is_rendered() -> None:
    asked = {words.replace("report log.csv", "report log log.csv") for words in (*_QUICK, *_SLOW)}
    rendered = {name for name in commands() for one in asked if f"{one} ".startswith(f"{name} ")}
    assert commands() - rendered == set(_NOT_RENDERED)


def numbers(text: str) -> set[str]:
    """Return the numbers that a text tells, but for the command at its end."""
    return set(_NUMBER.findall(text.partition("again with")[0]))


@pytest.mark.parametrize(
    "words", [*_QUICK, *(pytest.param(words, marks=pytest.mark.slow) for words in _SLOW)]
)
@pytest.mark.usefixtures("folder")
def test_no_number_is_cut(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    """The command is run once: all that it prints is one result, shown here at every width."""
    show = presenting.print_result

    def show_at_every_width(*result: Any) -> None:
        for width in (*WIDTHS, 400):
            monkeypatch.setenv("COLUMNS", str(width))
            show(*result)
            click.echo("\f", nl=False)

    monkeypatch.setattr(presenting, "print_result", show_at_every_width)
    ran = run(*words.split())
    assert ran.code == 0, ran.err
    *screens, rest = ran.out.split("\f")
    assert rest == ""
    for width, text in zip((*WIDTHS, 400), screens, strict=True):
        body = text.partition("again with")[0]
        assert max(map(len, body.splitlines())) <= width
        assert "\u2026" not in body or "\u2026" in words
        cut = numbers(screens[-1]) - numbers(text)
        assert not cut, (width, cut)


@pytest.mark.parametrize("command", [compare, simulate])
def test_help_of_the_widest_commands_is_two_screens(command: click.Command) -> None:
    context = click.Context(command, info_name=command.name, terminal_width=80)
    lines = command.get_help(context).splitlines()
    assert [line for line in lines if line.endswith(":") and line[0] != " "] == [
        *("Trace:", "Cluster:", "Scheduler:", "Conditions:", "Output:")
    ]
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 80
    alone = [line for line in lines if line.startswith("  -") and "  " not in line[2:]]
    assert len(alone) <= 1  # an option so long that its help starts on the next line
