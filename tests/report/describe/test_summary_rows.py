"""The cluster's row for people: every column once, right values, and why some are missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from windtunnel.characterize.summary import COLUMNS, cluster_summary
from windtunnel.report import summary_rows
from windtunnel.schema import as_jobs

if TYPE_CHECKING:
    from windtunnel.report.description import Description


def test_every_column_of_the_file_has_one_label() -> None:
    assert set(summary_rows.LABELS) == set(COLUMNS) - {"id"}
    labels = list(summary_rows.LABELS.values())
    assert len(labels) == len(set(labels))


def test_lines_hold_value_n_and_left_out(full: Description) -> None:
    lines = {line.cells[0].text: line for line in summary_rows.summary_lines(full.summary).lines}
    shown = {name: [cell.text for cell in line.cells[1:]] for name, line in lines.items()}
    # Nine GPU jobs of 1 to 9 h, one CPU job of 10 h.
    assert shown["job_num"] == ["10", "", ""]
    assert shown["gpu_job_num"] == ["9", "", ""]
    assert shown["avg_run_time_gpu"] == ["5 h 00 m", "9", "0"]
    assert shown["max_run_time_gpu"] == ["9 h 00 m", "9", "0"]
    assert shown["med_que_time_gpu"] == ["4 m 00 s", "9", "0"]
    assert shown["med_run_time_cpu"] == ["10 h 00 m", "1", "0"]
    # Completed: jobs 0, 3, 5, 8: 1 x 1 + 4 x 2 + 6 x 4 + 9 x 16 = 177 of 325 GPU hours; of them
    # 3 x 2 + 8 x 8 cancelled, the rest failed or timed out.
    assert shown["complete_gpu_time"] == ["177 GPU h", "9", "0"]
    assert shown["complete_rate_gpu_time"] == ["54 %", "9", "0"]
    assert lines["complete_gpu_time"].cells[1].title == "637,200 GPU s"
    assert lines["avg_que_time_gpu"].cells[1].title == "240 s"


def test_in_short_shows_the_same_numbers(full: Description) -> None:
    sizes, ends = summary_rows.summary_in_short(full.summary)
    rows = {line.label: [cell.text for cell in line.cells] for line in (*sizes.lines, *ends.lines)}
    assert rows["GPU jobs: run time"] == ["5 h 00 m", "5 h 00 m", "9 h 00 m", "9", "0"]
    assert rows["GPU jobs: GPUs"] == ["5.11", "4.00", "16", "9", "0"]
    assert rows["CPU jobs: wait"] == ["9 m 00 s", "9 m 00 s", "", "1", "0"]
    assert rows["GPU jobs: GPU hours"] == ["177", "70.0", "78.0", "9", "0"]
    assert rows["CPU jobs: of the jobs"] == ["0 %", "0 %", "100 %", "1", "0"]


def test_in_short_leaves_out_what_cannot_be_had(bare: Description) -> None:
    (sizes,) = summary_rows.summary_in_short(bare.summary)
    assert [line.label for line in sizes.lines] == ["run time", "GPUs"]
    assert [cell.text for cell in sizes.lines[0].cells] == ["15 s", "15 s", "20 s", "2", "1"]
    missing = summary_rows.not_had(bare.summary)
    assert len(missing) == len(bare.summary.why) > 10
    reasons = {label: reason for reason, _, label in missing}
    assert reasons["wait, mean (GPU jobs)"] == "None of 3 GPU jobs has a wait."
    assert reasons["run time, mean (CPU jobs)"] == "There are no CPU jobs."


def test_a_nameless_table_is_no_number_that_cannot_be_had() -> None:
    summary = cluster_summary(as_jobs({"submit_time": [0.0], "duration": [1.0], "num_gpus": [1]}))
    assert "id" in summary.why
    assert not [label for _, _, label in summary_rows.not_had(summary) if "id" in label.split()]


def test_differences_are_found_where_they_can_be_seen(full: Description) -> None:
    row = dict(full.summary.row)
    row |= {"avg_run_time_gpu": row["avg_run_time_gpu"] * 1.001, "max_gpu": None}
    row |= {"avg_que_time_gpu": row["avg_que_time_gpu"] * 1.0001}
    other = type(full.summary)(row, full.summary.n, full.summary.left_out, {})
    found = summary_rows.differences(full.summary, other)
    assert list(found) == ["avg_run_time_gpu", "max_gpu"]
    assert found["max_gpu"] == (16.0, None)


@pytest.mark.parametrize(
    ("column", "value", "text", "exact"),
    [
        ("job_num", 1_031_550, "1,031,550", "1,031,550"),
        ("avg_run_time_gpu", 1414.335, "23 m 34 s", "1,414.335 s"),
        ("fail_rate_gpu", 0.429, "43 %", "0.429"),
        ("fail_gpu_time", 426_292_851.0, "118,415 GPU h", "426,292,851 GPU s"),
        ("avg_gpu_num", 26.77, "26.8", "26.77"),
        ("max_gpu", 1024.0, "1,024", "1,024"),
        ("med_que_time_cpu", None, "\u2013", "unknown"),
    ],
)
def test_cells_have_their_units(column: str, value: float | None, text: str, exact: str) -> None:
    assert summary_rows.cell_text(column, value) == text
    assert summary_rows.exact_text(column, value) == exact
