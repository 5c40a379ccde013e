"""A twin as a file: both formats, refusals, and `open_trace`."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from windtunnel.errors import SpecError, TraceError
from windtunnel.traces import open_trace
from windtunnel.traces.twin.fit import fit
from windtunnel.traces.twin.twin import Twin, to_toml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from windtunnel.traces.trace import Trace


@pytest.fixture(scope="module")
def twin(rich: Trace) -> Twin:
    return fit(rich)


@pytest.mark.parametrize("name", ["a.twin.toml", "a.twin.json", "a.toml"])
def test_a_saved_twin_is_read_back_and_opened_as_a_trace(
    twin: Twin, tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    twin.save(path)
    assert Twin.load(path) == twin
    before = path.read_bytes()
    twin.save(path)
    assert path.read_bytes() == before
    assert len(before) < 100_000
    trace = open_trace(path, jobs=300, load=0.5, seed=4)
    assert trace.name == "a (twin)"
    assert trace.metadata.source == str(path)
    assert trace.jobs.equals(twin.generate(jobs=300, load=0.5, seed=4).jobs)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_toml_holds_any_kept_name(rich: Trace, tmp_path: Path) -> None:
    strange = 'a "b"\\c\td\x7f\n😀 = [x]'
    names = [strange if n == "Hidden-Eval" else n for n in rich.jobs["workload"].to_pylist()]
    columns = {name: rich.jobs[name] for name in rich.jobs.column_names}
    twin = fit({**columns, "workload": names}, keep_workloads=True)
    twin.save(tmp_path / "n.twin.toml")
    assert Twin.load(tmp_path / "n.twin.toml") == twin
    assert strange in {stratum.workload for stratum in twin.strata}


def test_toml_means_the_same_as_the_data(twin: Twin) -> None:
    assert tomllib.loads(to_toml(twin)) == msgspec.to_builtins(twin)


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """Return what sets one entry of plain data."""

    def apply(data: Any) -> None:
        *way, last = path.split(".")
        for step in way:
            data = data[int(step) if isinstance(data, list) else step]
        data[int(last) if isinstance(data, list) else last] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("format", "windtunnel-twin-9", "$.format: expected 'windtunnel-twin-1'"),
        ("surplus", 1, "unknown field `surplus`"),
        ("jobs", "many", "`$.jobs`"),
        ("jobs", 17, "$.strata: expected strata that have 17 jobs"),
        ("min_count", 1, "$.min_count"),
        ("strata", [], "$.strata"),
        ("strata.0.sizes.jobs.0", 0, "$.strata[0].sizes"),
        ("strata.0.wait.mean.0", -1.0, "$.strata[0].wait: expected means >= 0"),
        ("strata.0.wait.mean.0", 1e99, "means that do not fall"),
        ("strata.0.wait.jobs.0", 0, "groups of at least one job"),
        ("strata.0.wait.atoms", [999], "atoms"),
        ("strata.0.gpu_time", float("inf"), "GPU seconds"),
        ("strata.0.days.slots.0", 0, "$.strata[0].days"),
        ("ended.rest.0", 10**6, "$.ended: expected cells and rests that add up"),
        ("endings.0.status", "exploded", "$.endings[0].status"),
        ("endings.0.times.0", "noon", "$.endings[0].times"),
        ("endings.0.name", "rest", "$.endings"),
        ("arrivals.first_weekday", 7, "$.arrivals: expected a weekday"),
        ("arrivals.num_days", 10**9, "$.arrivals"),
        ("arrivals.week.slots.0", 2, "168 slots"),
        ("arrivals.gap", -1.0, "gap"),
        ("arrivals.load.gpu_time.0", -1.0, "GPU times >= 0"),
        ("arrivals.batches.size.0", 0.5, "at least one job"),
        ("templates.count.0", 0, "$.templates"),
        ("template_spread", -1.0, "$.template_spread"),
        ("known.template.listed.0.0", -5, "$.known.template"),
        ("names.vc.names.0", "vc-02", "$.names.vc.names"),
        ("names.vc.gpu_time", [], "$.names.vc.gpu_time"),
        ("users.0.users", 0, "$.users[0]"),
        ("users", [], "$.users"),
        ("whole", ["user"], "$.whole"),
    ],
)
def test_a_twin_that_contradicts_itself_is_refused(
    twin: Twin, tmp_path: Path, path: str, value: Any, words: str
) -> None:
    data = msgspec.to_builtins(twin)
    change(path, value)(data)
    file = tmp_path / "bad.twin.json"
    file.write_bytes(msgspec.json.encode(data).replace(b"null", b"1e999"))
    with pytest.raises(TraceError, match="as `windtunnel fit` writes it") as caught:
        Twin.load(file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"a = ", b"{", b"\xff\xfe", b"a = 1", b"[" * 100_000, b'{"a":' * 100_000]
)
def test_a_file_that_is_no_twin_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "bad.twin.toml"
    file.write_bytes(content)
    with pytest.raises(TraceError, match="a twin as"):
        open_trace(file)


def test_unknown_options_and_places_are_refused(twin: Twin, tmp_path: Path) -> None:
    twin.save(tmp_path / "a.twin.toml")
    with pytest.raises(SpecError, match="Did you mean 'jobs'"):
        open_trace(tmp_path / "a.twin.toml", job=3)
    with pytest.raises(TraceError, match="a place that can be written to"):
        twin.save(tmp_path / "nowhere" / "a.twin.toml")
    with pytest.raises(TraceError, match="a file that exists"):
        Twin.load(tmp_path / "b.twin.toml")


@pytest.mark.slow
def test_every_broken_number_is_an_error_of_ours(twin: Twin) -> None:
    data = msgspec.to_builtins(twin)

    def places(value: Any, path: str) -> list[str]:
        if isinstance(value, dict):
            return [p for k, v in value.items() for p in places(v, f"{path}.{k}")]
        if isinstance(value, list):
            return [p for n, v in enumerate(value[:2]) for p in places(v, f"{path}.{n}")]
        return [path[1:]] if isinstance(value, int | float) else []

    found = places(data, "")
    assert len(found) > 100
    for path in found:
        for value in (-3, 10**12):
            broken = msgspec.to_builtins(twin)
            change(path, value)(broken)
            try:
                odd = msgspec.convert(broken, Twin)
            except (SpecError, msgspec.ValidationError):
                continue
            assert odd.generate(jobs=50).jobs.num_rows == 50
