"""What is right where a command wants something: words of options, files, what stands beside them.

An option of which nothing here, in its type or in its metavar says what is right fails a test.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from windtunnel.cli.options import SectionOption
from windtunnel.site.conditions import FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

_POWER = "[gpus.default]\nidle_w = 50\nactive_w = 250\n"
_FAILURES = """
on_failure = "swap"
spares = 1
[checkpoint]
interval = "1h"
cost = 60
restart_cost = "5m"
[[node_failures]]
node = 1
time = 100
until = "2h"
[[failure_models]]
mtbf = "3d"
mttr = "1h"
distribution = "weibull"
shape = 0.7
found_after = "10m"
[job_failures]
rate = 0.001
[[maintenance]]
nodes = [0]
start = 1000
end = "1h"
drain_before = "10m"
[[capacity_changes]]
time = "2h"
remove = [0]
[[reservations]]
nodes = [2]
start = "3h"
end = "4h"
users = ["a"]
"""
_QUOTAS = "".join(
    f'[[queues]]\nvc = "{vc}"\nnominal_quota = 16\ncohort = "all"\nborrowing_limit = 8\n'
    for vc in ("a", "b", "*")
)
_TUNE = """
policies = ["fifo"]
clusters = ["16x4"]
[[traces]]
trace = "jobs.csv"
[search]
objective = "avg_wait"
policy = "sjf:by=sjg:aging={weight}"
trials = 2
[search.space]
weight = { low = 0.1, high = 1000, log = true }
"""
_SLURM = (
    "SchedulerType=sched/backfill\nPriorityType=priority/multifactor\n"
    "NodeName=n[1-2] CPUs=32 RealMemory=1000 Gres=gpu:A100:8\n"
    "PartitionName=a Nodes=ALL Default=YES MaxTime=30-00:00:00\n"
)
_KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: one}
spec:
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: default
      resources:
      - {name: nvidia.com/gpu, nominalQuota: 16}
""" + "".join(
    "---\napiVersion: kueue.x-k8s.io/v1beta1\nkind: LocalQueue\n"
    f"metadata: {{name: {name}, namespace: default}}\nspec: {{clusterQueue: one}}\n"
    for name in ("one", "a", "b")
)
_ENGINE = (
    "gpus = 1\n[cost]\nform = 'linear'\niteration_s = 0.008\nprefill_token_s = 4e-5\n"
    "decode_seq_s = 2e-5\nkv_token_s = 4e-8\n[engine]\nscheduler = 'vllm_v1'\nnum_blocks = 1000\n"
    "[power]\nidle_w = 90\nprefill_w = 650\ndecode_w = 420\n"
)
_PLACED = {"groups": [{"parallel": [1, 1, 2], "models": [0, 1]}]}
_CASE = {"model_set": ["small"], "num_models": 2, "total_rate": 8.0, "duration_s": 50, **_PLACED}
_INSTANCE = {
    "cluster": {"v100": 1, "k80": 2},
    "jobs": [
        {"id": "a", "throughputs": {"v100": 40.0, "k80": 4.0}, "num_steps_remaining": 40_000},
        {"id": "b", "throughputs": {"v100": 12.0, "k80": 10.0}, "num_steps_remaining": 10_000},
    ],
}
_NOW: dict[str, Any] = {"kind": "List", "items": []}
_POD = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 6}}}]}
_JOB = {
    "kind": "Job",
    "metadata": {"name": "j", "labels": {"kueue.x-k8s.io/queue-name": "one"}},
    "spec": {"template": {"spec": _POD}},
}
_MEASURED = "prefill_tokens,decode_seqs,kv_tokens,iteration_time\n" + "".join(
    f"{k * 37 % 900},{k % 64},{k * 7919 % 90_000},{0.01 + k * 37 % 900 * 1e-4 + k % 64 * 1e-5}\n"
    for k in range(30)
)
_LOG = "".join(
    json.dumps(
        {
            "input_toks": 50 + k,
            "output_toks": 1 + k % 20,
            "queued_ts": k * 0.5,
            "first_token_ts": k * 0.5 + 0.1,
            "last_token_ts": k * 0.5 + 0.9,
        }
    )
    + "\n"
    for k in range(20)
)
_REQUESTS = "arrival,prompt_tokens,output_tokens\n" + "".join(
    f"{k * 0.3},{50 + k * 7 % 90},{1 + k % 40}\n" for k in range(40)
)
_POINTS = (
    "plan,placement,iteration_time,cpu_threads,global_batch_size,parameters,gpu_memory_gib\n"
    "ga,1,0.657,,32,336297858,80\nga,4,0.2257,,32,336297858,80\nga,44,0.2100,,32,336297858,80\n"
    "zero-dp,2,0.3652,,32,336297858,80\nzero-dp,8,0.155,,32,336297858,80\n"
    "zero-offload,2,0.58,4,32,336297858,80\nzero-offload,8,0.284,4,32,336297858,80\n"
)
_PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n" + "".join(
    f"p{k},{4000 + 1000 * (k % 3)},1024,{1 + k % 2},{(460, 1000)[k % 2]}\n" for k in range(5)
)
_NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\nn2,64000,262144,2,T4\n"

#: Files that a call may read: name -> content. Beside them is always a jobs table, ``jobs.csv``.
FILES: dict[str, bytes] = {
    name: text.encode()
    for name, text in {
        "POWER": _POWER,
        "SERIES": "time,value\n0,100\n3600,200\n7200,100\n",
        "c.toml": 'name = "c"\n[[node_types]]\ncount = 2\ngpus = 4\n',
        "site.toml": '[site]\ncluster = "4x8"\n[scheduler]\npolicy = "srtf"\n',
        "study.toml": 'policies=["fifo"]\nclusters=["4x8"]\n[[traces]]\ntrace="jobs.csv"\n',
        "tune.toml": _TUNE,
        "failures.toml": _FAILURES,
        "quotas.toml": _QUOTAS,
        "prices.toml": 'currency = "EUR"\ndefault = 1.2\n[gpus]\nA100 = 2.5\n',
        "etc/slurm.conf": _SLURM,
        "kueue/kueue.yaml": _KUEUE,
        "now.json": json.dumps(_NOW),
        "job.json": json.dumps(_JOB),
        "in_use.csv": "time,active\n0,1\n600,2\n1200,1\n",
        "replay.csv": "job,start,end,gpus\n0,0,100,0-0\n",
        "nodes.csv": _NODES,
        "pods.csv": _PODS,
        "instance.json": json.dumps(_INSTANCE),
        "points.csv": _POINTS,
        "losses.csv": "iteration,loss_181,loss_811,loss_181_seed\n"
        + "".join(f"{k},{10 / k},{10 / k + 0.5},{10 / k - 0.25}\n" for k in range(1, 61)),
        "workload.toml": "num_models = 4\nrate = 5\ncv = 3\nduration = 30\n",
        "placed.json": json.dumps(_PLACED),
        "cases.jsonl": json.dumps({**_CASE, "slo_scale": 2, "goodput": 0.9}) + "\n",
        "engine.toml": _ENGINE,
        "requests.csv": _REQUESTS,
        "log.jsonl": _LOG,
        "measured.csv": _MEASURED,
        "fleet.toml": '[chat]\nmodel = "engine.toml"\nrequests = "requests.csv"\nttft = 0.5\n'
        '[code]\nmodel = "engine.toml"\nrequests = "requests.csv"\nttft = 1\ntpot = 0.1\n',
    }.items()
}

#: What options that take words of their own take, by the option's name: right ones, odd ones.
WORDS: dict[str, tuple[str, str]] = {
    "cluster": (
        "4x8 64x8 pool:64 8x8 16x4 4x8:A100 v100:16,k80:8 8x8:A100,4x4:T4 c.toml site.toml",
        "4x99999999 pool:99999999999999999999 0x8 -1x8 1000001x8 2x4: 2x4",
    ),
    "policy": (
        (
            "fifo sjf srtf las tiresias fair-share multifactor srsf las:quantum=0.1 gavel:fifo_perf"
            " quota edf:slack=2 easy morphling gavel:max_min_fairness_perf pollux:sia slurm"
        ),
        "las:quantum=1e-3 srtf:x=1 gavel:x pollux:x:y=1 multifactor:every=1e-6 las:quantum=nan",
    ),
    "serving policy": ("sr mp-search round-robin beam sr-uniform", "morphling"),
    "serving policies": ("sr,round-robin sr mp-search", "morphling"),
    "serving over": ("rate=1,2 cv=1,4", ""),
    "serving weights": ("relative absolute", ""),
    "gavel policy": ("max_min_fairness_perf fifo_perf allox isolated makespan", "x"),
    "gavel policies": ("fifo_perf allox,isolated max_min_fairness_perf", "x"),
    "gavel cluster": ("v100:8,k80:8", "x"),
    "throughput window": ("5", "1"),
    "throughput compat": ("morphling", "gavel"),
    "energy compat": ("zeus", "gavel"),
    "study policies": ("fifo", "x"),
    "study over": ("seeds weeks users", "x"),
    "study metric": ("avg_jct", "x"),
    "report to": ("focus", "csv"),
    "policies": ("fifo,sjf fifo,srtf,las tiresias,srsf", "fifo,fifo srtf,quota sjf,nope"),
    "queueing": ("strict skip easy easy_sjbf conservative", "slurm x"),
    "placement": ("best_fit spread pool first_fit fgd random fgd:gang=fill worst_fit", "x fgd:x=1"),
    "placements": ("fgd,best_fit random", "x"),
    "disruptions": (
        (
            "mtbf:30d/mttr:4h mtbf:1h/mttr:10m/checkpoint:5m/cost:60 rsc failures.toml "
            "mtbf:12h/mttr:1h/on_failure:end mtbf:1d/mttr:1h/swap:10m"
        ),
        "mtbf:1/mttr:1000d mtbf:1e-9/mttr:1 mtbf:1d mtbf:1e300d/mttr:1e300d swap:1e300",
    ),
    "slowdown": (
        "spread=0.42 spread=0.42,rack=0.8,share=0.9,cpu=0.28 traffic=5,link.host=12.5",
        "spread=1e300 rack=0 traffic=1e300,link.host=1e-300 traffic=nan,link.host=-0.0",
    ),
    "node_sleep": ("earth venus,wake_time=5m", "earth,step=1e-3 saturn,buffer=1e300"),
    "shift": (
        "series=SERIES,max_delay=12h series=SERIES,max_delay=2h",
        "series=SERIES,max_delay=1e300 max_delay=1h series=POWER,max_delay=1h",
    ),
    "power": ("POWER", "c.toml"),
    "power_cap": ("200kW 150000", "1e300 SERIES 1e13 0 900"),
    "carbon": ("400 SERIES", "1e308 -1"),
    "tariff": ("0.25 SERIES", "1e308 POWER"),
    "arrivals": ("300/60", "1e9/1e-9 1/0 poisson"),
    "estimates": ("recorded perfect cart", "nope"),
    "save_time": ("7 1=7/2=30 bert=20/*=5", "=1 1e300"),
    "restore_time": ("7 1=7", "*=1e300"),
    "zone": ("UTC Europe/Berlin", "../../etc/passwd Mars/Phobos"),
    "metrics": ("none", "nope a,b x:y"),
    "seed": ("0 1 7", "18446744073709551615 18446744073709551616"),
    "until": ("1000 1h 30d", "1e300 -1"),
    "decide_every": ("60 5m", "1e-9 1e300"),
    "rate": ("1 20", "2e7 1e300"),
    "over": ("rate=1,2 cv=1,4 seeds", "rate=1e9 x=1 rate=1:1e9:1e9 cv=nan"),
    "gpus": ("1 2 8", "99999999 1e300"),
    "workload": ("synthetic", "cifar100 x"),
    "reader": ("native sacct", "jobs philly gavel x"),
    "quotas": ("quotas.toml", "POWER"),
    "penalty": ("7 260", "1e300"),
    "workers": ("1", "0 -1 x"),
    "agings": ("0,1 none", "1e300 nan"),
    "at": ("1000 12d 2025-07-01T12:00:00", "1e300 0001-01-01 9999-99-99"),
    "baseline": ("fifo", "x"),
    "between": ("policy placement", "x"),
    "bind_types": ("all none A100,T4", ",,"),
    "beta": ("2 inf", "nan 0"),
    "counts": ("4,8 4", "1" + "0" * 30),
    "dispatch": ("least_work shortest_queue least_loaded round_robin", "x"),
    "events": ("batch submissions_first completions_first", "x"),
    "files": ("placed.json", "engine.toml"),
    "formats": ("svg pdf,png html", "x"),
    "gpu": ("v100 a40", "x"),
    "gpu_type": ("A100 T4", "x"),
    "group": ("1,1 1,2", "0,0 1e9,1e9"),
    "holdout": ("1", "x"),
    "job": ("1 0 kalos-01 job.json", "99999999"),
    "known_after": ("recorded end submit+duration", "x"),
    "kueue": ("kueue kueue/kueue.yaml", "POWER"),
    "like": ("bert roberta", "x"),
    "limits": ("p99_ttft<=1s p90_tpot<=50ms", "p99_ttft<=1e300 x"),
    "loads": ("0.5,1 2", "1e300 0 1e-300"),
    "measure": ("10:20", "20:10 0:99999999999"),
    "metric": ("gpu_util", "x"),
    "model": ("engine.toml", "engine.toml#x POWER"),
    "models": ("models", "POWER"),
    "name": ("mine", "x/y"),
    "node_order": ("shuffled name index", "x"),
    "nodes": ("+1 +4 -1", "+99999999 -99999999 +0 1e300"),
    "nodes_in_use": ("in_use.csv", "POWER"),
    "on": ("processes", "ray://:x x"),
    "only": ("nodes", "x"),
    "optimizer": ("zeus grid,oracle zeus:window=10", "zeus:window=1e300 os:system"),
    "partition": ("a", "x"),
    "penalties": ("0,260", "1e300"),
    "plan": ("zero-dp 244", "999999999 000"),
    "power_limits": ("jit known largest jit:by=energy", "jit:by=x os:system"),
    "prices": ("prices.toml", "POWER"),
    "profile": ("synthetic", "POWER"),
    "qos": ("normal", "x"),
    "rates": ("1,2 uniform power_law", "1e300 0 -1"),
    "record": ("r.parquet", "r.csv no/r.parquet"),
    "reference": ("181", "x"),
    "replay": ("replay.csv replay.csv:length=120:stop_time=2.5", "replay.csv:length=1e300 POWER"),
    "requests": ("requests.csv", "POWER"),
    "scenarios": ("philly", "x"),
    "scheduler": ("vllm_v1 sarathi vllm_v0 orca", "x"),
    "set_": ("acme pai all", "x"),
    "simulator": ("immediate events batching", "x"),
    "slice": ("0:1h 0:20", "1e300:0 20:0 nan:nan"),
    "slurm_conf": ("etc", "kueue POWER"),
    "snapshot": ("now.json", "job.json"),
    "split_ratio": ("1:1 1:2,2:1", "0:0 1:1e300"),
    "surface": (
        "nodes=2..6/2,policy=fifo,sjf load=0.8..1.2/0.2 policy=fifo,srtf,load=1,2",
        "nodes=1..99999999/1 load=0..1/1e-9 load=nan nodes=5..1/1 policy=x x=1 load=1e300",
    ),
    "telemetry": ("in_use.csv", "POWER"),
    "throughputs": ("instance.json", "POWER"),
    "to": ("csv parquet swf sacct batsim focus", "x"),
    "to_cluster": ("8x8 4x8:A100", "1000001x8 0x0"),
    "to_policy": ("sjf srtf las", "x:y"),
    "to_queueing": ("skip easy", "x"),
    "topology": ("block=4,rack=2", "block=0 rack=1e300 block=2,rack=3"),
    "topology_request": ("preferred:rack slice=rack/2@8", "slice=x/0 required:x"),
    "tp": ("1 1,2,4", "0 99999999"),
    "traces": ("base bp,mt", "x"),
    "trace": ("philly", "x"),
    "paper": ("column page", "x"),
    "user": ("a b", "x"),
    "vc": ("a b", "x"),
    "weights": ("1,2,3 1", "0,0 1e300,1e300"),
    "window": ("10%..90% jobs:1..9 0d..1d", "90%..10% 1e300d..2e300d jobs:9..1 nan%..1%"),
}

#: What is right where a kind of number is wanted.
KINDS = {
    "integer": ("1", "2", "8"),
    "integer range": ("1", "2", "8"),
    "float": ("0.5", "2", "1"),
    "float range": ("0.5", "2", "0.9"),
    "time": ("30s", "12h", "600"),
    "window": ("0:1h", "100:2000"),
    "cost": ("7",),
}

#: What a command's argument is where it is no trace; by the command's words, or by its name alone.
ARGUMENTS: dict[str, str] = {
    "study run": "study.toml",
    "study tune": "tune.toml",
    "study show": "OUT",
    "study compare": "OUT",
    "why": "r.parquet",
    "pack nodes": "nodes.csv",
    "pack pods": "pods.csv",
    "bench": "fifo",
    "gavel allocate": "instance.json",
    "throughput fit": "points.csv",
    "throughput losses": "losses.csv",
    "throughput": "bert",
    "throughput plan": "llama7b_bsz16",
    "serving evaluate": "cases.jsonl",
    "serving fleet": "fleet.toml",
    "serving llm": "requests.csv",
    "serving llm-capacity": "requests.csv",
    "serving llm-sweep": "requests.csv",
    "serving llm-fit": "measured.csv",
    "serving llm-replay": "log.jsonl",
    "serving": "workload.toml",
    "convert out": "out.csv",
}

#: What else a command needs, or an option, by its name: any one of these.
BESIDE: dict[str, Sequence[str]] = {
    "carbon": ("--power POWER",),
    "tariff": ("--power POWER",),
    "power_cap": ("--power POWER",),
    "node_sleep": ("--power POWER",),
    "timeline_window": ("--timeline t.json",),
    "quotas": ("--policy quota", "--policy sjf"),
    "blocking_limits": ("--quotas quotas.toml",),
    "throughputs": ("--policy gavel:fifo_perf",),
    "topology": ("--placement tree",),
    "topology_request": ("--placement tree --topology block=4,rack=2",),
    "kueue": ("--policy kueue --oversize reject",),
    "slurm_conf": ("--policy slurm",),
    "penalty": ("--policy morphling",),
    "replay": ("--policy fifo",),
    "whatif": (
        "--nodes +1 --anyway",
        "--to-policy sjf --anyway",
        "--surface nodes=2..4/1,policy=fifo,sjf --anyway",
        "--keep-p90-wait 10m --anyway",
        "--to-cluster 8x8 --anyway",
    ),
    "simulate": ("--oversize reject", "--oversize reject --incomplete reject"),
    "compare": ("--oversize reject", "--oversize reject --incomplete reject"),
    "gavel allocate": ("--policy max_min_fairness_perf",),
    "gavel timeline": ("--cluster v100:8,k80:8",),
    "learn": ("--out learned.toml",),
    "fit": ("--out a.twin.json", "--out a.twin.toml"),
    "figures": ("--out OUT",),
    "study run": ("--out OUT",),
    "predict wait": ("--gpus 2",),
    "plan reliability": ("--cluster 4x8 --disruptions mtbf:1d/mttr:1h/checkpoint:1h/cost:60",),
    "why": ("--job kalos-01", "--job kalos-40"),
    "report queue": ("--cluster 4x8",),
    "report cost": ("--price 2.5", "--prices prices.toml"),
    "serving llm-capacity": ("--ttft 1s", "--limit p99_ttft<=1s"),
    "serving llm-sweep": ("--ttft 1s --dispatch least_loaded,round_robin", "--over rate=1,2"),
    "serving sweep": ("--gpus 4 --over rate=1,2 --policy sr",),
    "serving simulate": ("--gpus 4 --policy sr",),
    "serving search": ("--gpus 4",),
    "serving capacity": ("--max-gpus 8",),
    "serving replace": ("--gpus 4 --every 10s",),
    "serving fleet": ("--gpus 4",),
    "throughput allocate": ("--gpus 4",),
    "throughput curve": ("--gpus 4",),
}


def right(param: click.Parameter, first: str = "") -> list[str]:
    """Return words that are right for an option; none = nobody knows.

    Args:
        param: the option.
        first: the first word of its command's name.
    """
    if f"{first} {param.name}" in WORDS:
        return WORDS[f"{first} {param.name}"][0].split()
    if isinstance(param.type, click.Choice):
        return [str(choice) for choice in param.type.choices]
    if param.name in WORDS:
        return WORDS[param.name][0].split()
    if isinstance(param.type, click.Path):
        return ["out.html" if param.name in {"timeline", "page"} else "out.csv"]
    return _few_words(param) or list(KINDS.get(param.type.name, ()))


def _few_words(param: click.Parameter) -> list[str]:
    """Return the words of which an option takes one; none = it takes others, too."""
    if isinstance(param, SectionOption) and FIELDS[str(param.name)].words:
        return list(FIELDS[str(param.name)].words)
    metavar = str(getattr(param, "metavar", None) or "")
    return metavar.split("|") if "|" in metavar and metavar == metavar.lower() else []
