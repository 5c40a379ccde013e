"""``windtunnel learn``: logs whose words slurm.conf could not hold."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

import windtunnel as wt
from windtunnel.cli.root import windtunnel as main
from windtunnel.study.site_file import read_site

if TYPE_CHECKING:
    from pathlib import Path

HEAD = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit"
    "|NNodes|NCPUS|ReqTRES|AllocTRES|NodeList|Reason"
)


def log_of(folder: Path, *places: tuple[str, str]) -> Path:
    """Write a log of jobs, each in a partition and on nodes."""
    rows = [HEAD]
    for at, (partition, nodes) in enumerate(places):
        start = f"2025-01-01T00:{at:02}:00"
        tres = "cpu=8,gres/gpu:a100=8,node=1"
        rows.append(
            f"{at}|{at}|u|a|{partition}|q|COMPLETED|{start}|{start}|{start}|2025-01-01T02:00:00"
            f"|{7200 - 60 * at}|03:00:00|1|8|{tres}|{tres}|{nodes}|None"
        )
    file = folder / "log.txt"
    file.write_text("\n".join(rows) + "\n")
    return file


@pytest.mark.parametrize("odd", ["DEFAULT", "g p", "p'''", "gpü"])
def test_partitions_without_a_name_for_slurm_are_noted(tmp_path: Path, odd: str) -> None:
    log, site = log_of(tmp_path, ("gpu", "n1"), (odd, "n2")), tmp_path / "s.toml"
    found = CliRunner().invoke(main, ["learn", str(log), "--out", str(site)])
    assert found.exit_code == 0, found.output
    assert "The partitions of 1 job have names that slurm.conf cannot have" in found.output
    assert "PartitionName=gpu Nodes=n1" in site.read_text()
    result = CliRunner().invoke(main, ["validate", str(log), "--site", str(site)])
    assert result.exit_code == 0, result.output


def test_without_any_partition_that_slurm_could_have_all_nodes_are_one(tmp_path: Path) -> None:
    log, site = log_of(tmp_path, ("DEFAULT", "n1"), ("DEFAULT", "DEFAULT,ALL")), tmp_path / "s.toml"
    found = CliRunner().invoke(main, ["learn", str(log), "--out", str(site)])
    assert found.exit_code == 0, found.output
    assert "PartitionName=all Nodes=n1 " in site.read_text()


def test_a_site_that_cannot_be_read_is_not_left_there(tmp_path: Path) -> None:
    log, site = log_of(tmp_path, ("gpu", "n1")), tmp_path / "site.toml"
    asked = ["learn", str(log), "--slurm-conf", str(tmp_path / "no"), "--out", str(site)]
    found = CliRunner().invoke(main, asked)
    assert found.exit_code == 2, found.output
    assert not site.exists()


@pytest.mark.parametrize("asked", ["simulate", "validate", "report queue", "report cost --price 2"])
def test_answers_tell_of_the_site_beside_the_log(tmp_path: Path, asked: str) -> None:
    log, site = log_of(tmp_path, ("gpu", "n1")), tmp_path / "site.toml"
    site.write_text('[site]\ncluster = "1x8"\n')
    found = CliRunner().invoke(main, [*asked.split(), str(log), "--json"])
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["site_file"] == str(site)
    found = CliRunner().invoke(main, [*asked.split(), str(log)])
    assert "site.toml, found beside the log" in " ".join(found.output.split())
    site.write_text("name = 'x'\n")
    found = CliRunner().invoke(main, [*asked.split(), str(log), "--json"])
    assert found.exit_code == 2, found.output
    assert "found neither [site] nor [scheduler]" in found.output
    assert not found.stdout


def test_types_that_differ_by_case_are_one_row(tmp_path: Path) -> None:
    log = log_of(tmp_path, ("gpu", "n1"), ("gpu", "n2"))
    rows = log.read_text().splitlines()
    log.write_text("\n".join([*rows[:2], rows[2].replace("gpu:a100", "gpu:A100")]) + "\n")
    found = CliRunner().invoke(main, ["report", "cost", str(log), "--price", "2", "--json"])
    answer = json.loads(found.stdout)
    assert [row["gpu_type"] for row in answer["by_gpu_type"]] == ["a100"]
    assert any("differ by case alone" in note for note in answer["notes"])


def test_the_library_learns_what_the_command_writes(tmp_path: Path) -> None:
    log, file = log_of(tmp_path, ("gpu", "n1"), ("gpu", "n2")), tmp_path / "s.toml"
    CliRunner().invoke(main, ["learn", str(log), "--out", str(file)])
    trace = wt.open_trace(log)
    site = wt.learn(trace)
    assert "PartitionName=gpu Nodes=n1,n2 " in site.slurm["conf"]
    written = read_site(file).site.slurm
    assert {key: text.strip() for key, text in written.items()} == site.slurm
    assert wt.simulate(trace, site, "slurm").cluster.num_gpus == 16
    with pytest.raises(wt.SpecError, match="learn: found no NodeList in the log"):
        wt.learn({"submit_time": [0], "duration": [5], "num_gpus": [1]})
