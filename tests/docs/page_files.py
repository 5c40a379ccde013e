"""The files that the commands of the documentation name, small."""

from __future__ import annotations

import json
import lzma
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import windtunnel as wt
from windtunnel.schema import as_jobs
from windtunnel.traces.native import write_csv
from windtunnel.traces.sacct_writer import write_sacct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

ROOT = Path(__file__).resolve().parents[2]


def jobs(num_gpus: Sequence[int] = (1, 2, 4, 8)) -> pa.Table:
    """Return what two nodes did in a day, first come first served; jobs ask for so many GPUs."""
    draw = np.random.default_rng(3)
    n = 60
    asked: dict[str, Any] = {
        "job_id": [f"{1000 + k}" for k in range(n)],
        "submit_time": np.sort(draw.uniform(0, 86_400, n)).round().tolist(),
        "duration": draw.uniform(60, 30_000, n).round().tolist(),
        "estimate": [36_000.0] * n,
        "num_gpus": [float(num_gpus[k % len(num_gpus)]) for k in range(n)],
        "num_cpus": [4.0 * num_gpus[k % len(num_gpus)] for k in range(n)],
        "user": [f"user-{k % 5}" for k in range(n)],
        "vc": [("nlp", "vision", "speech")[k % 3] for k in range(n)],
        "template": [f"template-{k % 9}" for k in range(n)],
        "priority": [float(k % 3) for k in range(n)],
        "status": [("completed", "failed")[k % 5 == 0] for k in range(n)],
    }
    run = wt.simulate(asked, "2x8", "fifo").table
    held = {name: run[name].to_pylist() for name in ("start_time", "end_time")}
    names = [",".join(f"node-{node}" for node in nodes) for nodes in run["nodes"].to_pylist()]
    return as_jobs({**asked, **held, "nodelist": names, "partition": ["gpu"] * n})


def block_of(page: str, beginning: str) -> str:
    """Return the block of a page that begins so."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"^```\w*\n({re.escape(beginning)}.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, (page, beginning)
    return found[1]


def _csv(head: str, rows: Iterable[str]) -> str:
    return "\n".join([head, *rows]) + "\n"


def _log(path: Path) -> None:
    write_sacct(jobs(), path)


def _jobs_of_one_gpu(path: Path) -> None:
    write_csv(jobs(num_gpus=(1,)), path)


def _pai_simulator(path: Path) -> None:
    head = "job_id,user,group,gpu_type,num_inst,num_cpu,num_gpu,submit_time,duration,wait_time,"
    head += "user_dur,user_gpu_dur,group_dur,group_gpu_dur"
    rows = (f"{k},u1,g1,,1,4,1,{60 * k},{500 + 7 * k},1,400,400,400,400" for k in range(20))
    path.write_text(_csv(head, rows))


def _gavel_trace(path: Path) -> None:
    job = "LM (batch size 5)\tpython main.py\t--steps\t1\t90000\t{}.000000\t{}\n"
    path.write_text("".join(job.format(60 * k, 1 + k % 2) for k in range(6)))


def _gavel_speeds(path: Path) -> None:
    """The published speeds, in the layout of Gavel's file."""
    from windtunnel.throughput import gavel_speeds

    table = gavel_speeds()
    speeds = {
        kind: {str(job): {"null": speed} for job, speed in alone.items()}
        for kind, alone in table.alone.items()
    }
    path.write_text(json.dumps(speeds))


def _groups(path: Path) -> None:
    rows = (f"{'ab'[k % 2]},{100 * k},{100 * k + 90},synthetic,1.0" for k in range(8))
    text = _csv("group,start_time,end_time,dataset,runtime_ratio", rows)
    path.write_bytes(lzma.compress(text.encode()))


def _losses(path: Path) -> None:
    rows = (f"{step},{10 / step},{10 / step + 0.5}" for step in range(1, 61))
    path.write_text(_csv("iteration,loss_181,loss_811", rows))


def _measured_training(folder: Path) -> None:
    folder.mkdir()
    sizes, limits = (128, 256, 512), (100, 200)
    train = (f"mine,net,{size},sgd,{run},0.75,{9 + run}" for size in sizes for run in (1, 2))
    head = "dataset,network,batch_size,optimizer,run,target_metric,target_epoch"
    (folder / "summary_train.csv").write_text(_csv(head, train))
    power = (
        f"mine,net,{size},sgd,{limit},{2000 / limit + 1000 / size},{0.9 * limit}"
        for size in sizes
        for limit in limits
    )
    head = "dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power"
    (folder / "summary_power_mine.csv").write_text(_csv(head, power))


def _telemetry(folder: Path) -> None:
    folder.mkdir()
    util = "DCGM_FI_DEV_GPU_UTIL"
    (folder / "node-1.prom").write_text(
        f"# TYPE {util} gauge\n"
        + "".join(
            f'{util}{{gpu="0",Hostname="node-1",hpc_job="1000"}} {k} {60_000 * k}\n'
            for k in range(20)
        )
    )


def _models(folder: Path) -> None:
    """Models that `throughput fit` made of the guide's measurements."""
    from click.testing import CliRunner

    from windtunnel.cli.root import windtunnel

    folder.mkdir()
    steps = folder / "steps.csv"
    steps.write_text(block_of("docs/guides/throughput.md", "nodes,num_gpus,local_batch"))
    for kind in ("A100", "V100"):
        words = ["--name", "template-1", "--gpu-type", kind, "--out", f"{folder}/{kind}.json"]
        ran = CliRunner().invoke(windtunnel, ["throughput", "fit", str(steps), *words])
        assert ran.exit_code == 0, ran.output
    steps.unlink()


def _preemption(path: Path) -> None:
    text = (ROOT / "examples/preemption.toml").read_text(encoding="utf-8")
    path.parent.mkdir()
    path.write_text(text.replace("jobs=10000", "jobs=150").replace("seeds = 8", "seeds = 2"))


def _study(path: Path) -> None:
    page = "docs/guides/studies.md"
    text = block_of(page, "name = ") + block_of(page, "[search]")
    text = text.replace("jobs=200", "jobs=60").replace("seeds = 6", "seeds = 2")
    path.write_text(text.replace("trials = 12", "trials = 2"))


def _policy(name: str) -> Callable[[Path], None]:
    text = f'import windtunnel as wt\n\n{name} = wt.policy("mine")(lambda job: job.submit_time)\n'
    return lambda path: path.write_text(text) and None


def _text(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(text) and None


def _block(page: str, beginning: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(block_of(page, beginning), encoding="utf-8") and None


#: A name in a command -> what writes it.
FILES: dict[str, Callable[[Path], None]] = {
    "sacct.txt": _log,
    "log.txt": _log,
    "jobs.csv": _jobs_of_one_gpu,
    "dev_jobs_2000.csv": _pai_simulator,
    "physical.trace": _gavel_trace,
    "simulation_throughputs.json": _gavel_speeds,
    "groups.csv.xz": _groups,
    "llama7b_loss.csv": _losses,
    "measured": _measured_training,
    "models/": _models,
    "points.csv": _block("docs/guides/throughput.md", "plan,placement,iteration_time"),
    "quotas.toml": _block("docs/guides/quotas.md", "[[queues]]"),
    "q.toml": _block("docs/guides/quotas.md", "[[queues]]"),
    "dcgm/": _telemetry,
    "power.toml": _block("docs/guides/cluster_energy.md", "pue = "),
    "cluster.toml": _text("[[node_types]]\ncount = 64\ngpus = 8\ncpus = 64\n"),
    "model.toml": _text("spread = 0.42\nshare = 0.8\n"),
    "site.toml": _block("docs/reference/clusters.md", "# site.toml"),
    "disruptions.toml": _text('[[failure_models]]\nmtbf = "30d"\nmttr = "4h"\n'),
    "bad_nodes.toml": _text(
        '[checkpoint]\ninterval = "1h"\ncost = 60\n'
        '[[failure_models]]\nmtbf = "30d"\nmttr = "4h"\n'
        '[[failure_models]]\nmtbf = "1d"\nmttr = "4h"\nnodes = [3]\n'
    ),
    "STUDY.toml": _study,
    "examples/preemption.toml": _preemption,
    "mymodule.py": _policy("rank"),
    "mypkg.py": _policy("policy"),
}
