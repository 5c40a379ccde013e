"""Limits on processor-minutes that were used, or may still be: worked by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import windtunnel as wt

if TYPE_CHECKING:
    from pathlib import Path

CONF = """
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/{priority}
PriorityDecayHalfLife={half_life}
PriorityCalcPeriod=1
AccountingStorageEnforce=associations,limits,qos
NodeName=g[1-2] CPUs=8 Gres=gpu:A100:8
PartitionName=all Nodes=ALL Default=YES
"""
ACCOUNTS = """add account a1 Cluster=wt Parent=root Fairshare=1
add user u01 Account=a1 Fairshare=1
add qos q {qos}
modify account where name=a1 set {account}
"""
#: Two jobs that use 40 and 4 processor-minutes, and a third, for which there is room at once.
JOBS = {
    "submit_time": [0, 100, 250],
    "duration": [300, 30, 30],
    "estimate": [600, 60, 60],
    "num_gpus": [8, 8, 8],
    "num_cpus": [8, 8, 8],
    "user": ["u01"] * 3,
    "account": ["a1"] * 3,
    "qos": ["q"] * 3,
}


def _starts(
    tmp_path: Path, priority: str, half_life: str, engine: Any, **limits: str
) -> list[float | None]:
    (tmp_path / "slurm.conf").write_text(CONF.format(priority=priority, half_life=half_life))
    values = {"qos": "Priority=0", "account": "Fairshare=1", **limits}
    (tmp_path / "accounts.sacctmgr").write_text(ACCOUNTS.format(**values))
    out = wt.simulate(JOBS, policy="slurm", slurm_conf=str(tmp_path), engine=engine)
    starts: list[float | None] = out.table["start_time"].to_pylist()
    return starts


@pytest.mark.parametrize("engine", ["compiled", "reference"])
@pytest.mark.parametrize(
    ("priority", "half_life", "limit", "starts"),
    [
        # By the calculation of 241 the first has used 1,920 s, and the second 240: more than 1,800.
        ("multifactor", "0", "GrpTRESMins=cpu=30", [1, 101, None]),
        ("multifactor", "0", "GrpTRESMins=cpu=3000", [1, 101, 251]),
        # Decayed there are 1,875 s left at 421 and 1,750 at 481; a cycle of backfill is at 491:
        # they follow each other from 251 on, when the third came.
        ("multifactor", "00:10:00", "GrpTRESMins=cpu=30", [1, 101, 491]),
        ("basic", "0", "GrpTRESMins=cpu=30", [1, 101, 251]),
        # The first may use 80 minutes, of which 72 are left by the calculation of 61; the second 8.
        ("multifactor", "0", "GrpTRESRunMins=cpu=85", [1, 101, 251]),
        ("basic", "0", "GrpTRESRunMins=cpu=85", [1, 302, 302]),
        # A job has as many GPUs as processors, and one node.
        ("multifactor", "0", "GrpTRESMins=gres/gpu=30", [1, 101, None]),
        ("multifactor", "0", "GrpTRESMins=node=4", [1, 101, None]),
        ("multifactor", "00:10:00", "GrpTRESMins=gres/gpu=30", [1, 101, 491]),
        ("multifactor", "0", "GrpTRESRunMins=gres/gpu=85", [1, 101, 251]),
        ("basic", "0", "GrpTRESRunMins=gres/gpu=85", [1, 302, 302]),
        ("basic", "0", "GrpTRESRunMins=node=10", [1, 302, 302]),
    ],
)
def test_minutes_of_an_account(
    tmp_path: Path, priority: str, half_life: str, limit: str, starts: list[Any], engine: Any
) -> None:
    assert _starts(tmp_path, priority, half_life, engine, account=limit) == starts


@pytest.mark.parametrize(
    ("half_life", "qos", "starts"),
    [
        ("00:10:00", "GrpTRESMins=cpu=30", [1, 101, 491]),
        ("00:10:00", "GrpTRESMins=cpu=30 Flags=NoDecay", [1, 101, None]),
        ("0", "GrpTRESMins=cpu=30 UsageFactor=0.5", [1, 101, 251]),
        ("0", "GrpTRESMins=cpu=30 UsageFactor=4", [1, None, None]),
    ],
)
def test_minutes_of_a_qos(tmp_path: Path, half_life: str, qos: str, starts: list[Any]) -> None:
    # Counted four times, the first has used 1,920 s by 61.
    assert _starts(tmp_path, "multifactor", half_life, "compiled", qos=qos) == starts
