"""Files of measurements: what they hold, what is odd about them, and what is refused."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windtunnel.energy import open_workload, study
from windtunnel.energy.quirks import above_limit, bound_by_host, slower_at_more_power
from windtunnel.energy.readers import IDENTITY, read_power, read_train
from windtunnel.energy.workload import sweeps_of
from windtunnel.errors import SpecError, TraceError, WindtunnelError
from windtunnel.traces.registry import MEASUREMENTS, published

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from windtunnel.energy import Sweep, Workload

TRAIN = """\
dataset,network,batch_size,optimizer,learning_rate,run,target_metric,target_epoch
mine,net,8,sgd,0.1,1,0.5,10
mine,net,8,sgd,0.1,2,0.5,
mine,net,16,sgd,0.1,1,0.5,7
mine,net,16,sgd,0.1,2,0.5,nan
mine,net,32,sgd,0.1,1,0.5,9
mine,net,32,sgd,0.1,1,0.7,19
"""
POWER = """\
dataset,network,batch_size,optimizer,power_limit,time_per_epoch,average_power
mine,net,32,sgd,100,10,104.5
mine,net,32,sgd,200,7,200
mine,net,16,sgd,200,8,180
mine,net,64,sgd,300,8,180
other,net,64,sgd,400,8,180
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "summary_train.csv").write_text(TRAIN)
    (tmp_path / "summary_power_mygpu.csv.gz").write_bytes(gzip.compress(POWER.encode()))
    (tmp_path / "notes.txt").write_text("not read")
    return tmp_path


def test_a_site_s_own_measurements(folder: Path) -> None:
    workload = open_workload(
        "mine", "mygpu", data=folder, target_metric=0.5, max_epochs=20, default_batch_size=32
    )
    assert (workload.name, workload.batch_sizes) == ("mine on mygpu", (16, 32))
    assert workload.max_power_w == 400.0  # the largest limit in the GPU's file
    assert workload.power_limits == (100, 200)
    assert workload.sweeps[32].power_limits == (200, 100)
    assert workload.sweeps[32].epoch_time == (7.0, 10.0)
    assert workload.epochs[32].tolist() == [9.0]
    assert workload.feasible_batch_sizes == (32,)
    assert workload.notes == (
        "Batch sizes in one of the two files only are left out: 8, 64.",
        "Runs that miss the target within 20 epochs, by batch size: 16 (1 of 2).",
        "Power limits that were not measured, by batch size: 16 (1 of 2).",
        "Mean power above the limit in 1 of 3 measurements, by up to 4.5 W; used as measured.",
    )


def test_the_default_batch_size_is_cut_to_what_the_gpu_was_measured_with(folder: Path) -> None:
    asked = {"target_metric": 0.5, "max_epochs": 20}
    with pytest.raises(SpecError, match=r"found 64; mine on mygpu was measured with 16, 32"):
        open_workload("mine", "mygpu", data=folder, **asked, default_batch_size=999)
    power = folder / "summary_power_mygpu.csv"
    power.write_text("".join(line for line in POWER.splitlines(True) if ",64," not in line))
    (folder / "summary_power_mygpu.csv.gz").unlink()
    workload = open_workload("mine", "mygpu", data=folder, **asked, default_batch_size=999)
    assert workload.default_batch_size == 32
    assert "The default batch size 999 is cut to 32, the largest measured on mygpu." in (
        workload.notes
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"gpu": "mygpus"}, r"--gpu: .*Did you mean 'mygpu'"),
        ({"name": "mien"}, r"--workload: .*Did you mean 'mine'"),
        ({"name": "mine/net/adam"}, r"--workload: .* expected one of mine/net/sgd"),
        ({"target_metric": None}, r"--target: is needed"),
        ({"max_epochs": None}, r"--max-epochs: is needed"),
        ({"default_batch_size": None}, r"--default-batch-size: is needed"),
        ({"target_metric": 0.6}, r"target: found 0.6; runs of mine have 0.5, 0.7"),
        ({"default_batch_size": 17}, r"found 17; mine on mygpu was measured with 16, 32"),
        ({"max_epochs": 0}, r"max_epochs: found 0"),
        ({"data": "no/such/folder"}, r"--data: expected a folder"),
    ],
)
def test_what_the_measurements_do_not_know_is_refused(
    folder: Path, changes: dict[str, object], message: str
) -> None:
    asked: dict[str, object] = {
        "name": "mine",
        "gpu": "mygpu",
        "data": folder,
        "target_metric": 0.5,
        "max_epochs": 20,
        "default_batch_size": 32,
        **changes,
    }
    with pytest.raises(SpecError, match=message):
        open_workload(asked.pop("name"), asked.pop("gpu"), **asked)  # type: ignore[arg-type]


def test_a_folder_without_measurements_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"expected summary_train.csv and summary_power_GPU.csv"):
        open_workload("mine", "mygpu", data=tmp_path)


@pytest.mark.parametrize(
    ("read", "text", "before", "after", "message"),
    [
        (read_train, TRAIN, "mine,net,8", "mine,,8", r"line 2, column 'network': found ''"),
        (read_train, TRAIN, ",8,sgd", ",0,sgd", r"line 2, column 'batch_size': found '0'"),
        (read_train, TRAIN, "0.5,10", "0.5,0", r"line 2, column 'target_epoch': found '0'"),
        (read_train, TRAIN, "0.5,10", "0.5,1.5", r"line 2, column 'target_epoch': found '1.5'"),
        (read_train, TRAIN, "0.5,10", "0.5,inf", r"line 2, column 'target_epoch': found 'inf'"),
        (read_train, TRAIN, "0.5,10", "x,10", r"line 2, column 'target_metric': found 'x'"),
        (read_train, TRAIN, ",2,0.5,\n", ",1,0.5,\n", r"line 3.*each dataset, .* once"),
        (read_power, POWER, ",10,", ",0,", r"line 2, column 'time_per_epoch': found '0'"),
        (read_power, POWER, "104.5", "nan", r"line 2, column 'average_power': found 'nan'"),
        (read_power, POWER, ",100,10", ",-1,10", r"line 2, column 'power_limit': found '-1'"),
        (read_power, POWER, "sgd,100", "sgd,200", r"line 3, column 'power_limit': found 200"),
        (read_power, POWER, "average_power", "power", r"expected a column 'average_power'"),
    ],
)
def test_wrong_files_are_refused(
    tmp_path: Path,
    read: Callable[[Path], pa.Table],
    text: str,
    before: str,
    after: str,
    message: str,
) -> None:
    path = tmp_path / "file.csv"
    path.write_text(text.replace(before, after, 1))
    with pytest.raises(TraceError, match=message):
        read(path)


def every_sweep(power: pa.Table) -> dict[object, Sweep]:
    """Return every sweep of a power file, whatever it trains."""
    found: dict[object, Sweep] = {}
    for identity in power.select(IDENTITY).group_by(list(IDENTITY)).aggregate([]).to_pylist():
        rows = power
        for column, value in identity.items():
            rows = rows.filter(pc.equal(rows[column], value))
        found |= {(*identity.values(), b): sweep for b, sweep in sweeps_of(rows).items()}
    return found


@pytest.mark.data
def test_the_published_files_and_their_quirks(zeus_dir: Path) -> None:
    train = read_train(zeus_dir / "summary_train.csv")
    assert (train.num_rows, train["target_epoch"].null_count) == (3759, 849)
    rows, above, slower, pairs = [], {}, 0, 0
    for gpu in ("v100", "a40", "p100", "rtx6000"):
        power = read_power(zeus_dir / f"summary_power_{gpu}.csv")
        rows.append(power.num_rows)
        sweeps = every_sweep(power)
        above[gpu] = above_limit(sweeps)  # type: ignore[arg-type]
        found = slower_at_more_power(sweeps)  # type: ignore[arg-type]
        slower, pairs = slower + found[0], pairs + found[1]
    assert rows == [476, 453, 270, 410]
    assert {gpu: len(found) for gpu, found in above.items() if found} == {"v100": 8, "a40": 39}
    assert round(max(above["v100"]), 1) == 2.1
    assert round(max(above["a40"]), 1) == 20.7
    assert (slower, pairs) == (187, 1391)


@pytest.mark.data
def test_the_published_workloads(measured: Callable[[str, str], Workload]) -> None:
    sizes = {
        "v100": (10, 5, 15, 13, 7, 5),
        "a40": (10, 6, 6, 12, 7, 5),
        "p100": (9, 2, 9, 13, 5, 4),
        "rtx6000": (10, 4, 11, 13, 6, 5),
    }
    names = ("cifar100", "imagenet", "librispeech", "movielens-1m", "squad", "sentiment140")
    for gpu, counts in sizes.items():
        found = tuple(len(measured(gpu, name).batch_sizes) for name in names)
        assert found == counts, gpu
    recurrences = [measured("v100", name).paper_recurrences for name in names]
    assert recurrences == [140, 70, 210, 182, 98, 70]
    cut = {
        ("v100", "librispeech"): 192,
        ("a40", "librispeech"): 192,
        ("rtx6000", "librispeech"): 128,
        ("p100", "librispeech"): 72,
        ("p100", "imagenet"): 128,
        ("p100", "squad"): 24,
        ("p100", "sentiment140"): 64,
    }
    assert {key: measured(*key).default_batch_size for key in cut} == cut
    assert [measured(gpu, "squad").max_power_w for gpu in sizes] == [250, 300, 250, 260]
    movielens = measured("rtx6000", "movielens-1m")
    assert movielens.sweeps[4].power_limits == (260, 250)
    assert "Power limits that were not measured, by batch size: 4 (6 of 8)." in movielens.notes
    assert measured("a40", "sentiment140").power_limits == (100, 150, 200, 250, 300)
    assert measured("v100", "cifar100").power_limits == tuple(range(100, 251, 25))
    never = {name: set(w.batch_sizes) - set(w.feasible_batch_sizes) for name in names
             for w in [measured("v100", name)]}  # fmt: skip
    assert never == {
        "cifar100": {2048, 4096},
        "imagenet": {64},
        "librispeech": set(),
        "movielens-1m": {4, 8, 16, 32},
        "squad": set(),
        "sentiment140": set(),
    }
    assert 8 in bound_by_host(measured("v100", "cifar100").sweeps)


def test_the_registry_entry_is_whole() -> None:
    entry = MEASUREMENTS["zeus"]
    assert published("Zeus") is entry
    assert [file.role for file in entry.files] == ["train", "v100", "a40", "p100", "rtx6000"]
    for file in entry.files:
        assert file.url.startswith("https://raw.githubusercontent.com/ml-energy/zeus/")
        assert (len(file.sha256), file.size > 0) == (64, True)
    assert "Apache-2.0" in entry.licence


@pytest.mark.data
def test_the_registry_has_them(zeus_dir: Path) -> None:
    from windtunnel.traces import fetch, list_traces, open_trace

    paths = fetch("zeus")
    assert set(paths) == {"train", "v100", "a40", "p100", "rtx6000"}
    assert {known.name: known.available for known in list_traces()}["zeus"] == "mirror"
    with pytest.raises(SpecError, match=r"measurements, not jobs; `windtunnel energy` reads them"):
        open_trace("zeus")
    assert open_workload("squad").notes == open_workload("squad", data=zeus_dir).notes


CELLS = (
    "",
    "nan",
    "inf",
    "-1",
    "0",
    "1e308",
    "1e-308",
    "9" * 21,
    "x",
    '"',
    "1,2",
    "\x00",
    "\u00e9",
)


@given(
    file=st.sampled_from(["train", "power"]),
    row=st.integers(0, 5),
    column=st.integers(0, 6),
    cell=st.sampled_from(CELLS),
)
def test_any_damaged_cell_is_one_clear_error_or_a_whole_workload(
    file: str, row: int, column: int, cell: str
) -> None:
    texts = {"train": TRAIN, "power": POWER}
    lines = [line.split(",") for line in texts[file].splitlines()]
    lines[row % len(lines)][column] = cell
    texts[file] = "\n".join(",".join(cells) for cells in lines) + "\n"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "summary_train.csv").write_text(texts["train"], encoding="utf-8")
        (folder / "summary_power_g.csv").write_text(texts["power"], encoding="utf-8")
        try:
            workload = open_workload(
                *("mine", "g"),
                data=folder,
                target_metric=0.5,
                max_epochs=20,
                default_batch_size=32,
            )
            study(workload, ["zeus", "grid"], seeds=[1], recurrences=10)
        except WindtunnelError as error:
            message = str(error)
        else:
            message = workload.name
    assert message.isprintable()
