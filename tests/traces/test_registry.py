"""Names, mirrors, downloads, and how a file finds its reader. No test touches the network."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from windtunnel.errors import SchemaError, SpecError, TraceError
from windtunnel.storage import cache_dir
from windtunnel.traces import Trace, fetch, list_traces, open_trace, reader
from windtunnel.traces.readers import READERS
from windtunnel.traces.registry import PUBLISHED, locate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTENT = b"timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:00:00,5.0,8,40.0,a\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no mirror."""
    monkeypatch.delenv("WINDTUNNEL_DATA", raising=False)
    monkeypatch.setenv("WINDTUNNEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A web server on this machine that publishes a tiny ``philly``; its folder."""
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "philly.csv").write_bytes(CONTENT)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as web:
        thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        publish(monkeypatch, f"http://127.0.0.1:{web.server_port}/philly.csv")
        yield folder
        web.shutdown()
        thread.join()


def publish(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    """Let ``philly`` be `CONTENT`, published at ``url``."""
    trace = PUBLISHED["philly"]
    digest = hashlib.sha256(CONTENT).hexdigest()
    file = replace(trace.files[0], url=url, sha256=digest, size=len(CONTENT))
    monkeypatch.setitem(PUBLISHED, "philly", replace(trace, files=(file,)))


@pytest.mark.parametrize("progress", [False, True])
def test_a_download_is_kept(cache: Path, server: Path, progress: bool) -> None:  # noqa: FBT001
    assert locate("philly") is None
    paths = fetch("philly", progress=progress)
    assert paths == {"jobs": cache / "philly" / "philly_sia.csv"}
    assert paths["jobs"].read_bytes() == CONTENT
    (server / "philly.csv").unlink()
    assert fetch("philly") == locate("philly") == paths
    trace = open_trace("philly")
    assert (trace.name, trace.jobs.num_rows) == ("philly", 1)
    assert {t.name: t.available for t in list_traces()}["philly"] == "cache"


def test_the_progress_bar_stays_off_standard_output(
    cache: Path, server: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch("philly", progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "philly" in captured.err


def test_a_cache_that_cannot_be_kept_ends_no_run(cache: Path, server: Path) -> None:
    cache.write_text("a file where the folder should be")
    path = fetch("philly", progress=False)["jobs"]
    assert path.read_bytes() == CONTENT
    assert open_trace("philly").jobs.num_rows == 1
    assert cache.is_file()


def test_a_damaged_cache_is_downloaded_again(cache: Path, server: Path) -> None:
    path = fetch("philly", progress=False)["jobs"]
    path.write_bytes(b"")  # what a full disk leaves
    assert fetch("philly", progress=False)["jobs"].read_bytes() == CONTENT
    path.write_bytes(CONTENT[:-5])
    assert fetch("philly", progress=False)["jobs"].read_bytes() == CONTENT


def test_another_file_on_the_server_is_refused(cache: Path, server: Path) -> None:
    (server / "philly.csv").write_bytes(CONTENT + b"x")
    with pytest.raises(TraceError, match=r"the server's file is another one"):
        fetch("philly", progress=False)
    assert not list(cache.rglob("*.csv"))


def test_a_refusing_server(cache: Path, server: Path) -> None:
    (server / "philly.csv").unlink()
    with pytest.raises(TraceError, match=r"the server answers 404"):
        fetch("philly", progress=False)


def test_no_network_is_one_sentence_that_says_what_to_do(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    publish(monkeypatch, "http://127.0.0.1:9/philly.csv")  # the discard port: nobody listens
    with pytest.raises(TraceError) as caught:
        open_trace("philly")
    message = str(caught.value)
    assert "\n" not in message
    for part in (
        "cannot be downloaded (no connection to the server)",
        "http://127.0.0.1:9/philly.csv",
        str(cache / "philly" / "philly_sia.csv"),
        "WINDTUNNEL_DATA",
        "philly/philly_sia.csv",
    ):
        assert part in message


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_mirror_comes_first(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: type[bytes]
) -> None:
    publish(monkeypatch, "http://127.0.0.1:9/philly.csv")
    name = "philly_sia.csv.gz" if pack is not bytes else "philly_sia.csv"
    path = tmp_path / "mirror" / "philly" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(pack(CONTENT))
    monkeypatch.setenv("WINDTUNNEL_DATA", str(tmp_path / "mirror"))
    assert fetch("philly") == {"jobs": path}
    assert {t.name: t.available for t in list_traces()}["philly"] == "mirror"
    assert not cache.exists()
    path.write_bytes(pack(CONTENT[:-5]))
    with pytest.raises(TraceError, match=r"SHA-256.*cut or altered"):
        fetch("philly")


def test_entries_are_whole() -> None:
    for name, trace in PUBLISHED.items():
        assert trace.name == name
        assert trace.reader in READERS
        assert trace.files[0].role == "jobs"
        for file in trace.files:
            assert file.url.startswith("https://")
            assert len(file.sha256) == 64
            assert file.size > 0
    assert len({f.sha256 for t in PUBLISHED.values() for f in t.files}) == len(PUBLISHED) + 1


def test_the_cache_has_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINDTUNNEL_CACHE", raising=False)
    assert cache_dir().name == "windtunnel"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("phily", r"'phily' is neither a file nor a published trace. Did you mean 'philly'\?"),
        ("openb:gpuspec3", "Did you mean 'openb:gpuspec33'"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(spec: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        open_trace(spec)


def test_synthetic_traces_have_names() -> None:
    listed = {t.name: t for t in list_traces()}
    assert listed["synthetic:kalos"].available == "generated"
    assert "Kalos" in listed["synthetic:kalos"].title
    assert open_trace("synthetic:kalos", jobs=50, seed=1).jobs.num_rows == 50
    with pytest.raises(SpecError, match=r"Did you mean 'kalos'"):
        open_trace("synthetic:kaols")
    with pytest.raises(SpecError, match=r"Did you mean 'seed'"):
        open_trace("synthetic:kalos", sed=1)


def test_an_unknown_format_or_option_suggests_the_nearest(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\na,0,1,1\n")
    with pytest.raises(SpecError, match=r"Did you mean 'native'"):
        open_trace(path, format="natives")
    with pytest.raises(SpecError, match=r"options of native: .*Did you mean 'delimiter'"):
        open_trace(path, delimeter=";")
    with pytest.raises(SpecError, match=r"options of philly: .*Did you mean 'zone'"):
        open_trace("philly", zome="UTC")


def test_a_file_of_unknown_kind_and_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "t.xyz"
    path.write_text("job_id\n")
    with pytest.raises(SpecError, match=r"cannot tell the format of 't.xyz'; name it"):
        open_trace(path)
    with pytest.raises(TraceError, match=r"It is a folder"):
        open_trace(tmp_path)
    path.write_bytes(CONTENT)  # the first line says what the ending does not
    assert open_trace(str(path)).jobs.num_rows == 1
    with pytest.raises(TraceError, match=r"no.xyz: expected a file that exists"):
        open_trace(tmp_path / "no.xyz")


@pytest.mark.usefixtures("plugins_forgotten")
def test_a_site_reader_is_found_by_ending_sniff_and_name(tmp_path: Path) -> None:
    def mine(head: bytes) -> bool:
        return head.startswith(b"#mysite")

    @reader("mysite", extensions=(".csv", ".site"), sniff=mine)
    def read(path: Path, *, gpus: int = 1) -> dict[str, list[float]]:
        """Read one job from a file's name."""
        return {"submit_time": [0.0], "duration": [len(path.name)], "num_gpus": [gpus]}

    for name in ("t.csv", "t.site"):
        path = tmp_path / name
        path.write_text("#mysite\n")
        trace = open_trace(path, gpus=4)
        assert isinstance(trace, Trace)
        assert trace.jobs["num_gpus"].to_pylist() == [4.0]
        assert trace.metadata.rows_read == 1
    path.write_text("job_id\n")
    assert open_trace(path, format="mysite").name == "t.site"
    with pytest.raises(SchemaError, match=r"num_gpus"):
        open_trace(path, format="mysite", gpus=-1)


@pytest.mark.data
def test_every_published_trace_of_the_mirror_is_whole(data_dir: Path) -> None:
    for name, trace in PUBLISHED.items():
        paths = fetch(name)
        assert set(paths) == {file.role for file in trace.files}
