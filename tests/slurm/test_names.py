"""Names that a site or its jobs have, and the other does not: partitions, QOS, accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel as main
from windtunnel.sim.slurm.names import unused_site_names
from windtunnel.site.slurm import SlurmAssociation, SlurmPartition, SlurmQos, SlurmSite

if TYPE_CHECKING:
    from pathlib import Path

SITE = SlurmSite(
    partitions=(
        SlurmPartition("gpu", ("n1",), is_default=True, qos="part"),
        SlurmPartition("gold", ("n1",)),
    ),
    qos=(SlurmQos("high"), SlurmQos("part"), SlurmQos("mine")),
    associations=(
        SlurmAssociation("root"),
        SlurmAssociation("lab", parent="root"),
        SlurmAssociation("nlp", parent="lab"),
        SlurmAssociation("vision", parent="lab"),
        SlurmAssociation("nlp", "ann", default_qos="mine"),
    ),
)
QOS = "'high', 'mine', 'normal', 'part'"


@pytest.mark.parametrize(
    ("jobs", "sentences"),
    [
        ({"partition": ["gpu", "gold"]}, []),
        ({"partition": ["gold,gpu"]}, []),
        ({"partition": ["gold", None]}, []),  # without one it is the default
        (
            {"partition": ["gpu", "silver"]},
            [
                "Jobs name partition 'silver'; the site has 'gold', 'gpu'.",
                "The site names partition 'gold'; the trace has 'gpu', 'silver'.",
            ],
        ),
        ({}, ["The site names partition 'gold'; the trace has none."]),
        ({"partition": ["gpu", "gold"], "qos": ["high", "normal"]}, []),
        (
            {"partition": ["gpu", "gold"], "qos": ["hihg", None]},
            [
                f"Jobs name qos 'hihg' (did you mean 'high'?); the site has {QOS}.",
                "The site names qos 'high' (did you mean 'hihg'?); the trace has 'hihg'.",
            ],
        ),
        ({"partition": ["gpu", "gold"], "account": ["nlp", "vision"]}, []),
        ({"partition": ["gpu", "gold"], "account": ["nlp", None], "vc": ["bio", "vision"]}, []),
        (
            {"partition": ["gpu", "gold"], "vc": ["nlp", "bio"]},
            [
                "Jobs name account 'bio'; the site has 'lab', 'nlp', 'root', 'vision'.",
                "The site names account 'vision'; the trace has 'bio', 'nlp'.",
            ],
        ),
    ],
)
def test_names_are_compared_both_ways(jobs: dict[str, list[Any]], sentences: list[str]) -> None:
    assert unused_site_names(SITE, pa.table(jobs)) == sentences


def test_a_site_without_qos_and_accounts_is_compared_in_neither() -> None:
    site = SlurmSite(partitions=SITE.partitions[:1])
    jobs = pa.table({"partition": ["gpu"], "qos": ["high"], "account": ["nlp"]})
    assert unused_site_names(site, jobs) == []


CONF = """
NodeName=g[1-4] CPUs=32 Gres=gpu:A100:8
PartitionName=gpu Nodes=g[1-4] Default=YES
PartitionName=gold Nodes=g[1-2]
"""
JOBS = """\
job_id,submit_time,start_time,end_time,duration,num_gpus,partition
1,0,1,101,100,8,gpu
2,0,1,61,60,8,silver
"""
SENTENCE = "Jobs name partition 'silver'; the site has 'gold', 'gpu'."


def test_runs_of_slurm_tell_them_and_others_do_not(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    jobs = {"submit_time": [0], "duration": [9], "num_gpus": [8], "partition": ["silver"]}
    assert SENTENCE in wt.simulate(jobs, policy="slurm", slurm_conf=str(tmp_path)).notes
    assert not wt.simulate(jobs, policy="fifo", slurm_conf=str(tmp_path)).notes
    assert not wt.simulate(jobs, "2x8:A100", policy="slurm").notes


@pytest.mark.parametrize("command", [["simulate", "--policy", "slurm"], ["validate"],
                                     ["report", "queue"]])  # fmt: skip
def test_commands_tell_them(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / "slurm.conf").write_text(CONF)
    log = tmp_path / "jobs.csv"
    log.write_text(JOBS)
    words = [*command, str(log), "--slurm-conf", str(tmp_path)]
    ran = CliRunner().invoke(main, words, env={"COLUMNS": "160"})
    assert ran.exit_code == 0, ran.output
    assert SENTENCE in " ".join(ran.output.split())
