"""Which of several limits holds: by hand, after Slurm's page on resource limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from pathlib import Path

CONF = """
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/basic
AccountingStorageEnforce=associations,limits,qos
NodeName=g[1-3] CPUs=8 RealMemory=65536 Gres=gpu:A100:8
PartitionName=all Nodes=ALL Default=YES {part}
"""
ACCOUNTS = """
add qos normal
add qos q {qos}
add qos p {its}
add account lab {account}
add user ann account=lab {ann}
add user bob account=lab
"""


def _starts(folder: Path, engine: Any, who: str, asked: str | None = None, **limits: str) -> Any:
    """Return when jobs start that come at once, of users by their first letters.

    Each has a node of 8 GPUs, and 16 GiB, for 100 s. One that waits starts a second after another
    has ended.
    """
    values = dict.fromkeys(("qos", "its", "account", "ann", "part"), "") | limits
    (folder / "slurm.conf").write_text(CONF.format(**values))
    (folder / "accounts.sacctmgr").write_text(ACCOUNTS.format(**values))
    jobs: dict[str, list[Any]] = {
        "submit_time": [0] * len(who),
        "duration": [100] * len(who),
        "estimate": [120] * len(who),
        "num_gpus": [8] * len(who),
        "num_cpus": [8] * len(who),
        "mem_gib": [16] * len(who),
        "user": [{"a": "ann", "b": "bob"}[one] for one in who],
        "account": ["lab"] * len(who),
    }
    if asked is not None:
        jobs["qos"] = [asked] * len(who)
    out = wt.simulate(jobs, policy="slurm", slurm_conf=str(folder), engine=engine)
    return out.table["start_time"].to_pylist()


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("limits", "starts"),
    [
        # Each user may run one job, where the account says so: it is no limit of the account.
        ({"account": "MaxJobs=1"}, [1, 1, 102]),
        # Her own goes before the account's, be it more or less.
        ({"account": "MaxJobs=1", "ann": "MaxJobs=2"}, [1, 1, 1]),
        ({"account": "MaxWall=1", "ann": "MaxWall=10"}, [1, None, 1]),
        ({"account": "MaxTRES=gres/gpu=4", "ann": "MaxTRES=gres/gpu=8"}, [1, None, 1]),
        ({"account": "MaxTRES=mem=8G", "ann": "MaxTRES=mem=16G"}, [1, None, 1]),
        # Limits on groups hold on every level.
        ({"account": "GrpTRES=gres/gpu=8", "ann": "GrpTRES=gres/gpu=16"}, [1, 102, 203]),
    ],
)
def test_of_associations(tmp_path: Path, limits: Any, starts: Any, engine: Any) -> None:
    assert _starts(tmp_path, engine, "aba", **limits) == starts


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("asked", "limits", "starts"),
    [
        ("q", {"account": "GrpTRES=gres/gpu=8"}, [1, 102, 203]),
        # A QOS that states a limit of the kind decides; of other kinds, or things, it does not.
        ("q", {"qos": "GrpTRES=gres/gpu=16", "account": "GrpTRES=gres/gpu=8"}, [1, 1, 102]),
        ("q", {"qos": "GrpTRES=cpu=16", "account": "GrpTRES=gres/gpu=8"}, [1, 102, 203]),
        ("q", {"qos": "GrpJobs=2", "account": "GrpJobs=1"}, [1, 1, 102]),
        ("q", {"qos": "MaxJobsPU=2", "account": "MaxJobs=1"}, [1, 1, 1]),
        ("q", {"qos": "MaxWall=10", "account": "MaxWall=1"}, [1, 1, 1]),
        ("q", {"qos": "MaxTRES=gres/gpu=8", "account": "MaxTRES=gres/gpu=4"}, [1, 1, 1]),
        # The partition's goes before the job's, but for a flag.
        ("q", {"part": "QOS=p", "its": "GrpJobs=2", "qos": "GrpJobs=1"}, [1, 1, 102]),
        (
            "q",
            {"part": "QOS=p", "its": "GrpJobs=2", "qos": "GrpJobs=1 Flags=OverPartQOS"},
            [1, 102, 203],
        ),
        ("q", {"part": "QOS=p", "its": "MaxJobsPU=2", "qos": "GrpJobs=1"}, [1, 102, 203]),
        # Who names no QOS has the default one, which the account hands down.
        (None, {"qos": "MaxJobsPU=1", "account": "DefaultQOS=q"}, [1, 1, 102]),
        (None, {"qos": "MaxJobsPU=1"}, [1, 1, 1]),
    ],
)
def test_of_qos(tmp_path: Path, asked: str | None, limits: Any, starts: Any, engine: Any) -> None:
    assert _starts(tmp_path, engine, "aba", asked, **limits) == starts
