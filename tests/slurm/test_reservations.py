"""Reservations as scontrol prints them: what is read, what is refused, and on whose clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import windtunnel as wt
from windtunnel.errors import PolicyError, SpecError, TraceError
from windtunnel.policies.slurm.policy import Slurm
from windtunnel.policies.slurm.site_of import read_site_folder
from windtunnel.site.conditions import Conditions
from windtunnel.site.slurm_reservations import read_reservations
from windtunnel.study.changes import on_clock
from windtunnel.study.resolving import resolved

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """
ReservationName=maint StartTime=2025-03-30T00:00:00 EndTime=2025-03-30T12:00:00 Duration=12:00:00
   Nodes=n[1-2] NodeCnt=2 CoreCnt=16 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES
   Users=root,ann Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE

ReservationName=all StartTime=2025-01-02T00:00:00 EndTime=2025-01-03T00:00:00 Nodes=ALL Users=(null) Accounts=lab Flags=
"""  # noqa: E501 - as it is printed


def test_what_is_read() -> None:
    first, second = read_reservations(TEXT, "x.res", ("n1", "n2", "n3"))
    assert (first.name, first.nodes, first.end - first.start) == ("maint", ("n1", "n2"), 43200)
    assert first.users == {"root", "ann"}
    assert first.flags == {"MAINT", "SPEC_NODES"}
    assert (second.nodes, second.accounts) == (("n1", "n2", "n3"), {"lab"})
    assert read_reservations("No reservations in the system\n", "x.res", ("n1",)) == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("n[1-2]", "n[1-9]"), "n3"),
        (("2025-03-30T12:00:00", "soon"), "a date"),
        (("2025-03-30T12:00:00", "2025-03-29T12:00:00"), "an end after the start"),
        (("Nodes=n[1-2]", "Other=1"), "nodes of the site"),
        (("Flags=MAINT", "Flags=DAILY"), "write each time that it comes"),
        ((TEXT, '{"reservations": []}'), "as scontrol show reservation prints it"),
    ],
)
def test_what_is_refused(change: tuple[str, str], message: str) -> None:
    with pytest.raises(TraceError, match=r"x\.res") as error:
        read_reservations(TEXT.replace(*change), "x.res", ("n1", "n2"))
    assert message in str(error.value)


def test_dates_are_of_the_zone_and_the_logs_clock(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "NodeName=n[1-3] CPUs=8 Gres=gpu:8\nPartitionName=p Nodes=n[1-3] Default=YES\n"
    )
    (tmp_path / "site.res").write_text(TEXT)
    given = resolved(Conditions().having(slurm_conf=str(tmp_path), policy="slurm"))
    there = on_clock(given, "2025-03-29T23:00:00+00:00", "Europe/Berlin").scheduler.policy.site
    # The clocks go forward that night: noon is eleven hours after midnight.
    assert (there.reservations[0].start, there.reservations[0].end) == (0.0, 11 * 3600.0)
    with pytest.raises(SpecError, match="the trace has none"):
        on_clock(given, None, None)
    jobs = {"submit_time": [0.0], "duration": [9.0], "num_gpus": [8], "estimate": [3600.0]}
    with pytest.raises(PolicyError, match="reservations have dates"):
        wt.simulate(jobs, "3x8", Slurm(read_site_folder(tmp_path)))
    flown = wt.simulate(jobs | {"num_gpus": [24]}, "3x8", Slurm(there))
    assert flown.table["start_time"][0].as_py() >= 11 * 3600
