"""Headline numbers for people: short labels for every claim, units, and reasons grouped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windtunnel.characterize.headline_tables import CLAIMS, NOT_IN_TABLES
from windtunnel.report import headline_rows
from windtunnel.report.headline_rows import GROUPS, NOT_IN_TRACES
from windtunnel.report.unanswered import in_short, unanswered

if TYPE_CHECKING:
    from windtunnel.report.description import Description

#: Most characters of a label on a terminal of 80 columns.
MAX_LABEL = 36


def test_every_claim_has_a_short_label_of_its_own() -> None:
    labels = {key: label for group in GROUPS.values() for key, label in group.items()}
    assert set(labels) == {claim.key for claim in CLAIMS}
    assert len(set(labels.values())) == len(labels)
    assert max(map(len, labels.values())) <= MAX_LABEL
    assert set(GROUPS[NOT_IN_TRACES]) == set(NOT_IN_TABLES)


def test_rows_are_what_can_be_had_in_groups(full: Description) -> None:
    lines = headline_rows.headlines_table(full.headlines).lines
    keys = {label: key for group in GROUPS.values() for key, label in group.items()}
    by_key = {keys[line.label]: line.cells for line in lines}
    assert set(by_key) == {one.key for one in full.headlines if one.value is not None}
    groups = [line.group for line in lines]
    assert groups == sorted(groups, key=list(GROUPS).index)
    # Waits of the nine GPU jobs 0 to 8 min: P90 is 7.2 min; the CPU job waits 9: 8.1 min.
    assert by_key["wait_p90_whole"][0].text == "7 m 12 s"
    assert by_key["wait_p90"][0].text == "8 m 06 s"
    assert by_key["wait_p90_whole"][-1].text == "19 m 10 s"
    assert by_key["wait_p90"][-1].text == "\u2013"
    assert by_key["recurring_jobs"][0].text == "60 %"
    assert by_key["users"][0].text == "4"
    assert by_key["gpu_time"][0].title == "1,170,000 GPU s"
    # Failed or timed out: 2 h x 1 GPU, 5 h x 4, 7 h x 8, of 325 GPU hours.
    assert by_key["failed_gpu_time"][0].title == f"{78 / 325:.15g}"
    assert by_key["request_ratio_gpu"][-1].text == ">\u00a02.0\u00d7"


def test_numbers_without_value_have_a_reason_each(bare: Description) -> None:
    missing = headline_rows.not_had(bare.headlines)
    assert len(missing) == sum(one.value is None for one in bare.headlines)
    assert len(missing) + len(headline_rows.headlines_table(bare.headlines).lines) == len(CLAIMS)
    assert all(reason for reason, _, _ in missing)


def test_reasons_are_grouped_and_nothing_is_lost(bare: Description) -> None:
    entries = headline_rows.not_had(bare.headlines)
    found = unanswered(entries)
    assert sum(len(one.labels) for one in found) == len(entries)
    assert len({one.reason for one in found}) == len(found) < len(entries)
    assert all(label in one.full for one in found for label in one.labels)


def test_short_reasons_name_few_and_count_many() -> None:
    found = unanswered(
        [
            ("the trace has no nodes.", "Nodes", "cores"),
            ("the trace has no tasks", "Use", "one"),
            ("the trace has no tasks.", "Use", "two"),
            ("the trace has no tasks", "Nodes", "three"),
            ("not in the trace", NOT_IN_TRACES, "four"),
            ("needs a testbed", NOT_IN_TRACES, "five"),
        ]
    )
    assert in_short(found, NOT_IN_TRACES) == [
        "The trace has no nodes: cores.",
        "The trace has no tasks: 3 numbers (use and nodes).",
        "Not in the tables of any trace: 2 numbers (models and simulations).",
    ]
    assert found[1].full == "The trace has no tasks: one; two; three."
    assert unanswered([]) == in_short([], NOT_IN_TRACES) == []
