"""Quotas as data: files, mappings, defaults, and what is refused; and the books' arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import windtunnel as wt
from windtunnel.policies.quota_books import Account, open_accounts
from windtunnel.policies.quotas import QueueQuota, Quotas, proportional
from windtunnel.sim.cohort_order import PARTS

if TYPE_CHECKING:
    from pathlib import Path

TOML = """
[[queues]]
vc = "team-a"
nominal_quota = 9
borrowing_limit = 1
cohort = "ab"
queueing_strategy = "StrictFIFO"

[[queues]]
vc = "team-b"
nominalQuota = 12
lendingLimit = 5
cohort = "ab"
reclaimWithinCohort = "Any"
"""


def accounts(*queues: dict[str, Any]) -> list[Account]:
    named = [{"vc": f"q{i}", "cohort": "c", **queue} for i, queue in enumerate(queues)]
    return open_accounts(Quotas.from_mapping({"queues": named}))


def most(*queues: dict[str, Any], flavor: str = "") -> list[float]:
    return [account.most(flavor) / PARTS for account in accounts(*queues)]


def test_a_file_is_read_in_both_spellings(tmp_path: Path) -> None:
    path = tmp_path / "quotas.toml"
    path.write_text(TOML, encoding="utf-8")
    quotas = Quotas.from_toml(path)
    assert quotas.queues == (
        QueueQuota(
            vc="team-a",
            nominal_quota=9.0,
            borrowing_limit=1.0,
            cohort="ab",
            queueing_strategy="StrictFIFO",
        ),
        QueueQuota(
            vc="team-b",
            nominal_quota=12.0,
            lending_limit=5.0,
            cohort="ab",
            reclaim_within_cohort="Any",
        ),
    )
    assert quotas.total == 21
    assert Quotas.from_mapping(quotas.to_mapping()) == quotas


def test_the_short_form_is_one_cohort() -> None:
    plain = Quotas.from_mapping({"a": 4, "b": 8})
    assert [(q.vc, q.nominal_quota, q.cohort) for q in plain.queues] == [
        ("a", 4, "all"),
        ("b", 8, "all"),
    ]
    typed = Quotas.from_mapping({"a": {"A100": 2, "T4": 6}})
    assert typed.queues[0].flavors == ("A100", "T4")
    assert typed.total == 8


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"queues": []}, "at least one queue"),
        ({"queue": [{"vc": "a"}]}, "Did you mean 'queues'"),
        ({"queues": [{"vc": "a", "nominal": 1}]}, "unknown name 'nominal'"),
        ({"queues": [{"vc": "a"}]}, "nominal_quota"),
        ({"queues": [{"vc": "a", "nominal_quota": -1}]}, "expected 0 to 1,000,000,000"),
        ({"queues": [{"vc": "a", "nominal_quota": float("nan")}]}, "expected 0 to 1,000,000,000"),
        # As millionths it is more than an integer of an array holds.
        ({"a": 1e13}, r"queues\[0\].nominal_quota: found 10000000000000.0; expected 0 to"),
        ({"queues": [{"vc": "a", "nominal_quota": "8"}]}, "Expected"),
        ({"queues": [{"vc": "a", "nominal_quota": 1}] * 2}, "found 'a' twice"),
        ({"queues": [{"vc": "a", "nominal_quota": 1, "nominalQuota": 1}]}, "both spellings"),
        ({"queues": [{"vc": "a", "nominal_quota": 1, "borrowing_limit": 1}]}, "name its cohort"),
        ({"queues": [{"vc": "a", "nominal_quota": 1, "weight": 0}]}, "above 0"),
        ({"queues": [{"vc": "a", "nominal_quota": 1, "reclaim_within_cohort": "All"}]}, "Invalid"),
        ({"a": 1, "b": {"T4": 1}}, "expected one kind"),
        (
            {"queues": [{"vc": "a", "nominal_quota": {"T4": 1}, "cohort": "c", "lendingLimit": 1}]},
            "a number for each GPU type",
        ),
        (
            {
                "queues": [
                    {
                        "vc": "a",
                        "nominal_quota": {"T4": 1},
                        "cohort": "c",
                        "borrowing_limit": {"A100": 1},
                    }
                ]
            },
            "GPU types that nominal_quota has",
        ),
    ],
)
def test_what_is_refused(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(wt.SpecError, match=message):
        Quotas.from_mapping(raw)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(wt.SpecError, match="cannot be read as TOML"):
        Quotas.from_toml(tmp_path / "none.toml")


def test_the_examples_of_kueues_documentation() -> None:
    """Two queues of 9 and 12 cores: 21 each; with a borrowing limit of 1 the first has 10."""
    nine, twelve = {"nominal_quota": 9}, {"nominal_quota": 12}
    assert most(nine, twelve) == [21, 21]
    assert most(nine | {"borrowing_limit": 1}, twelve) == [10, 21]


def test_a_lending_limit_keeps_the_rest() -> None:
    # The second puts 5 of its 12 into the cohort: the first has 9 + 5; it keeps 7 for itself.
    assert most({"nominal_quota": 9}, {"nominal_quota": 12, "lending_limit": 5}) == [14, 21]
    assert most({"nominal_quota": 9}, {"nominal_quota": 12, "lending_limit": 0}) == [9, 21]
    assert most({"nominal_quota": 9, "lending_limit": 0}, {"nominal_quota": 12}) == [21, 12]


def test_without_a_cohort_nothing_is_shared() -> None:
    assert most({"nominal_quota": 9, "cohort": None}, {"nominal_quota": 12, "cohort": None}) == [
        9,
        12,
    ]


def test_what_is_available_while_others_use_theirs() -> None:
    first, second = accounts({"nominal_quota": 4}, {"nominal_quota": 4, "lending_limit": 1})
    first.usage[""] = 3 * PARTS
    assert second.available("") == 5 * PARTS  # 3 it keeps, and 5 - 3 = 2 of the cohort's
    assert first.available("") == 2 * PARTS
    second.usage[""] = 5 * PARTS  # 2 out of the cohort: all that is left of it
    assert [first.available(""), second.available("")] == [0, 0]
    assert second.borrows("")
    assert not first.borrows("")


def test_shares_are_what_is_borrowed_over_what_is_lent() -> None:
    heavy, light = accounts({"nominal_quota": 2, "weight": 2}, {"nominal_quota": 6})
    assert heavy.share() == 0
    assert heavy.share({"": 4 * PARTS}) == 2 / 8 / 2
    assert light.share({"": 8 * PARTS}) == 2 / 8


def test_proportional_to_past_use() -> None:
    quotas, note = proportional({"b": 30.0, "a": 10.0}, {"a": 1, "b": 1}, 8)
    assert {q.vc: q.nominal_quota for q in quotas.queues} == {"a": 2, "b": 6}
    assert "in proportion" in note
    # a's share, 2, does not hold its job of 4; the others share the remaining 4 as 3 to 1.
    raised, _ = proportional({"a": 10.0, "b": 22.5, "c": 7.5}, {"a": 4, "b": 1, "c": 1}, 8)
    assert {q.vc: q.nominal_quota for q in raised.queues} == {"a": 4, "b": 3, "c": 1}
    over, note = proportional({"a": 1.0, "b": 1.0}, {"a": 8, "b": 8}, 8)
    assert over.total == 16
    assert "8 GPUs more than there are" in note


@given(
    st.dictionaries(
        st.text("abcdef", min_size=1, max_size=2),
        st.tuples(st.floats(0, 1e9), st.integers(0, 9)),
        min_size=1,
        max_size=8,
    ),
    st.integers(1, 200),
)
def test_proportional_gives_out_every_gpu_once(
    use: dict[str, tuple[float, int]], num_gpus: int
) -> None:
    least = {vc: float(most) for vc, (_, most) in use.items()}
    quotas, note = proportional({vc: used for vc, (used, _) in use.items()}, least, num_gpus)
    given_out = {q.vc: q.nominal_quota for q in quotas.queues}
    assert all(given_out[vc] >= least[vc] for vc in use)
    floors = sum(least.values())
    assert sum(given_out.values()) == max(floors, num_gpus)  # type: ignore[arg-type]
    assert ("more than there are" in note) == (sum(given_out.values()) > num_gpus)  # type: ignore[arg-type]
