"""Every number that a command tells stands whole in a terminal of 60, 80 and 160 characters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click
import numpy as np
import pytest

from windtunnel.cli.compare import compare
from windtunnel.cli.simulate import simulate
from windtunnel.schema import as_jobs
from windtunnel.traces.native import write_csv

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WIDTHS = (60, 80, 160)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_QUICK = (
    "compare LOG --cluster 2x8 --policies fifo,sjf,srtf",
    "simulate LOG --cluster 2x8",
    "report queue LOG --cluster 2x8",
    "gavel makespan --counts 4 --policies fifo_perf",
    "throughput curve t5 --gpus 1..8",
)
_SLOW = (
    "report LOG --cluster 2x8 --price 2.5",
    "report waste LOG",
    "report cost LOG --price 2.5",
    "predict wait LOG --gpus 2",
    "predict durations LOG --model rolling,sju,sjg,requested",
    "predict effect LOG --cluster 2x8 --loads 1 --aging 1 --no-reservations --model oracle,sjg",
    "validate LOG --policies fifo --cluster 2x8",
    "whatif LOG --nodes +1 --cluster 2x8 --price 1 --anyway",
    "describe LOG",
    "throughput plan",
    "throughput allocate t5 roberta --gpus 4",
    "throughput errors llama7",
    "energy optimum --workload synthetic",
    "energy optimum --workload synthetic --gpu all",
    "energy simulate --workload synthetic --recurrences 10 --seeds 2",
    "energy groups synthetic --workload synthetic",
    "pack 2x8 LOG --placement best_fit,random --seeds 2",
    "gavel sweep --policies fifo_perf --rates 2 --measure 2:6",
    "traces",
    "plan reliability LOG --cluster 3x8 --disruptions mtbf:30d/mttr:8h/cost:2m/restart:5m",
    "plan reliability --gpus 512 --work 5d --disruptions mtbf:30d/mttr:8h/cost:2m/restart:5m",
    "report goodput LOG",
    "serving llm REQUESTS --ttft 1 --tpot 0.1",
    "serving llm-sweep REQUESTS --over rate=1,2 --ttft 1 --price 2.5",
    "serving llm-sweep REQUESTS --dispatch least_loaded,round_robin --price 2.5",
    "serving llm-capacity REQUESTS --ttft 10",
    "bench",
    "convert LOG LOG.swf",
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of jobs that waited, with large numbers and long names."""
    draw = np.random.default_rng(3)
    n = 120
    submit = np.sort(draw.uniform(0, 5 * 86_400, n)).round()
    wait = draw.choice([0.0, 900.0, 90_000.0], n)
    run = draw.uniform(60, 900_000, n).round()
    jobs: dict[str, Any] = {
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
    path = tmp_path / "log.csv"
    write_csv(as_jobs(jobs), path)
    return path


@pytest.fixture
def requests(tmp_path: Path) -> Path:
    """Requests to a language model, one every two seconds."""
    path = tmp_path / "requests.csv"
    rows = (f"{2 * k},{500 + k * 37 % 900},{50 + k * 13 % 200}" for k in range(60))
    path.write_text("\n".join(["arrived_at,num_prefill_tokens,num_decode_tokens", *rows]))
    return path


def numbers(text: str) -> set[str]:
    """Return the numbers that a text tells, but for the command at its end."""
    return set(_NUMBER.findall(text.partition("again with")[0]))


@pytest.mark.parametrize(
    "words", [*_QUICK, *(pytest.param(words, marks=pytest.mark.slow) for words in _SLOW)]
)
def test_no_number_is_cut(
    run: Callable[..., Any],
    log: Path,
    requests: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
) -> None:
    asked = words.replace("LOG", str(log)).replace("REQUESTS", str(requests))
    at_width = {}
    for width in (*WIDTHS, 400):
        monkeypatch.setenv("COLUMNS", str(width))
        ran = run(*asked.split())
        assert ran.code == 0, ran.err
        at_width[width] = numbers(ran.out)
        body = ran.out.partition("again with")[0]
        assert max(map(len, body.splitlines())) <= width
        assert "\u2026" not in body or "\u2026" in words
    for width in WIDTHS:
        assert at_width[width] >= at_width[400], (width, at_width[400] - at_width[width])


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
