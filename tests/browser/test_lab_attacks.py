"""The lab under attack: by another origin in the same browser, by raw sockets, by many visitors."""

from __future__ import annotations

import contextlib
import http.server
import signal
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_PATIENCE = 60_000
#: What no one else may ever see: the log's name and what is in it.
_PRIVATE = "private-log-of-ours"
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / f"{_PRIVATE}.csv"
    rows = [f"{_PRIVATE}-{i},{10 * i},{50 + i % 7},{1 + i % 8}" for i in range(200)]
    path.write_text("\n".join(["job_id,submit_time,duration,num_gpus", *rows, ""]))
    return path


@pytest.fixture(scope="module")
def lab(log: Path, serve: Callable[..., Any]) -> Iterator[Any]:
    with serve(log) as lab:
        lab.enter()
        yield lab


def raw(lab: Any, data: bytes, wait: float = 10) -> bytes:
    """Send bytes; return what comes back until the server closes, or says nothing more."""
    with socket.create_connection(("127.0.0.1", lab.port), timeout=wait) as plug:
        plug.sendall(data)
        answer = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while piece := plug.recv(65536):
                answer += piece
                if b"\r\n\r\n" in answer and not answer.startswith(b"HTTP/1.1 200"):
                    break
    return answer


def request(path: str, method: str = "GET", body: str = "", **headers: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1"]
    given = {"Connection": "close", **headers} | (
        {"Content-Length": str(len(body))} if body else {}
    )
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in given.items() if value]
    return ("\r\n".join([*lines, "", ""]) + body).encode()


def status(answer: bytes) -> int:
    return int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0


def test_the_one_who_opened_it_gets_the_page(lab: Any) -> None:
    cookie = "=".join(lab.cookie)
    answer = raw(lab, request("/", Host=f"127.0.0.1:{lab.port}", Cookie=cookie))
    assert status(answer) == 200
    assert b"content-security-policy: default-src 'none'" in answer.lower()
    own = {"Host": f"127.0.0.1:{lab.port}", "Cookie": cookie}
    joined = raw(
        lab,
        request("/ws?session_id=s_own", Origin=lab.page.rstrip("/"), **own, **UPGRADE),
        wait=2,
    )
    assert status(joined) == 101


@pytest.mark.parametrize("cookie", ["", "stolen", "own"])
@pytest.mark.parametrize(
    ("path", "method", "headers"),
    [
        ("/", "GET", {"Host": ""}),
        ("/", "GET", {"Host": "evil.example"}),
        ("/", "GET", {"Host": "evil.example:80"}),
        ("http://evil.example/", "GET", {"Host": "evil.example"}),
        ("/", "GET", {"Origin": "http://evil.example"}),
        ("/", "OPTIONS", {"Origin": "http://evil.example"}),
        ("/", "GET", {"Sec-Fetch-Site": "cross-site"}),
        ("/?token=guess", "GET", {"Origin": "http://evil.example"}),
        ("/ws?session_id=s_1", "GET", {"Origin": "http://evil.example", **UPGRADE}),
        ("/ws?session_id=s_1", "GET", {"Origin": "null", **UPGRADE}),
        ("/ws?session_id=s_1", "GET", UPGRADE),
        ("/api/kernel/function_call", "POST", {"Origin": "http://evil.example"}),
        ("/api/kernel/function_call", "POST", {}),
        ("/api/kernel/run", "POST", {"Origin": "own"}),
        ("/api/kernel/shutdown", "POST", {"Origin": "own"}),
        ("/api/files/list_files", "POST", {"Origin": "own"}),
        ("/api/export/html", "POST", {"Origin": "own"}),
        ("/terminal/ws", "GET", {"Origin": "own", **UPGRADE}),
        ("/@file/../../../../etc/passwd", "GET", {"Origin": "http://evil.example"}),
        ("/assets/..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd", "GET", {}),
        ("/assets/../../../../../../../etc/passwd", "GET", {}),
        ("//evil.example/", "GET", {}),
    ],
)
def test_raw_requests_are_refused(
    lab: Any, path: str, method: str, headers: dict[str, str], cookie: str
) -> None:
    kept = {"": "", "stolen": f"{lab.cookie[0]}=x", "own": "=".join(lab.cookie)}[cookie]
    given = {"Host": f"127.0.0.1:{lab.port}", "Cookie": kept, **headers}
    if given.get("Origin") == "own":
        given["Origin"] = lab.page.rstrip("/")
    body = '{"function_call_id": "1", "namespace": "x", "function_name": "load", "args": {}}'
    answer = raw(lab, request(path, method, body if method == "POST" else "", **given))
    assert 400 <= status(answer) < 500, answer[:300]
    assert b"access-control" not in answer.lower()
    assert _PRIVATE.encode() not in answer
    assert b"root:" not in answer


def test_the_address_that_was_printed_opens_it_no_second_time(lab: Any) -> None:
    path = "/?" + lab.address.partition("?")[2]
    answer = raw(lab, request(path, Host=f"127.0.0.1:{lab.port}"))
    assert status(answer) == 403
    assert b"set-cookie" not in answer.lower()


@pytest.mark.parametrize(
    "noise",
    [b"\0" * 4096, b"GET / HTTP/9.9\r\n\r\n", b"GET /" + b"a" * 200_000, b"\x16\x03\x01\x02"],
)
def test_noise_ends_nothing(lab: Any, noise: bytes) -> None:
    assert status(raw(lab, noise, wait=2)) in {0, 400, 403, 404, 414, 421, 431}
    assert lab.process.poll() is None


@contextlib.contextmanager
def evil(html: str) -> Iterator[int]:
    """Serve a page from another port of this machine."""

    class Site(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield site.server_port
        finally:
            site.shutdown()
            thread.join()


#: Each returns what it got of the lab; nothing but an error or an opaque answer may come.
ATTACKS = {
    "page": "fetch(lab, {credentials: 'include'}).then(r => r.text())",
    "blind page": "fetch(lab, {mode: 'no-cors', credentials: 'include'}).then(r => r.text())",
    "asset": "fetch(lab + 'manifest.json', {credentials: 'include'}).then(r => r.text())",
    "function call": (
        "fetch(lab + 'api/kernel/function_call', {method: 'POST', credentials: 'include',"
        " headers: {'Content-Type': 'application/json'},"
        ' body: \'{"functionCallId":"1","namespace":"x","functionName":"load","args":{}}\'})'
        ".then(r => r.text())"
    ),
    "websocket": (
        "new Promise((got, no) => {"
        " const socket = new WebSocket(lab.replace('http', 'ws') + 'ws?session_id=s_evil');"
        " socket.onmessage = m => got(m.data); socket.onopen = () => got('opened');"
        " socket.onerror = () => no('closed'); })"
    ),
    "frame": (
        "new Promise((got, no) => { const frame = document.createElement('iframe');"
        " frame.src = lab; document.body.append(frame);"
        " frame.onload = () => { try { got(frame.contentDocument.body.innerText) }"
        " catch (e) { no('blocked') } }; })"
    ),
    "script": (
        "new Promise((got, no) => { const s = document.createElement('script');"
        " s.src = lab + 'public-files-sw.js'; s.onload = () => got('ran');"
        " s.onerror = () => no('blocked'); document.body.append(s); })"
    ),
    "download": "fetch(lab + '@file/1-x.txt', {credentials: 'include'}).then(r => r.text())",
    "window": (
        "new Promise((got, no) => { const other = window.open(lab);"
        " setTimeout(() => { try { got(other.document.body.innerText) }"
        " catch (e) { no('blocked') } }, 1500); })"
    ),
}


@pytest.mark.parametrize("where", ["127.0.0.1", "localhost"])  # the same site, and another
@pytest.mark.parametrize("attack", ATTACKS)
def test_another_origin_gets_nothing(chromium: Any, lab: Any, attack: str, where: str) -> None:
    with evil("<!doctype html><body></body>") as port:
        context = chromium.new_context()
        try:
            lab.lend_cookie(context)
            page = context.new_page()
            page.goto(f"http://{where}:{port}/")
            # An open window of another site has no document; one that is shut out has an empty one.
            got = page.evaluate(
                "([lab, code]) => Promise.resolve().then(() => (0, eval)("
                "'lab => ' + code)(lab)).then(t => 'got ' + t, e => 'refused ' + e)",
                [lab.page, ATTACKS[attack]],
            )
        finally:
            context.close()
    assert got.startswith("refused ") or got == "got ", got
    assert _PRIVATE not in got


def _threads(lab: Any) -> int:
    return len(list(Path(f"/proc/{lab.process.pid}/task").iterdir()))


def _join(lab: Any, session: str) -> socket.socket:
    """Open a tab's websocket as the page does; the tab then flies the trace."""
    plug = socket.create_connection(("127.0.0.1", lab.port), timeout=30)
    own = {"Host": f"127.0.0.1:{lab.port}", "Cookie": "=".join(lab.cookie)}
    own["Origin"] = lab.page.rstrip("/")
    plug.sendall(request(f"/ws?session_id={session}", **own, **UPGRADE))
    plug.settimeout(1)
    return plug


def _hear(plug: socket.socket, seconds: float) -> bytes:
    heard, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(TimeoutError, ConnectionError):
            piece = plug.recv(65536)
            heard += piece
            if not piece:
                break
    return heard


def test_many_visitors_are_turned_away_and_what_they_held_is_freed(
    log: Path, serve: Callable[..., Any]
) -> None:
    if not Path("/proc/self/task").is_dir():
        pytest.skip("no list of threads on this system")
    with serve(log) as lab:
        lab.enter()
        first = _join(lab, "s_first0")
        assert status(_hear(first, 4)) == 101
        before = _threads(lab)
        plugs = [_join(lab, f"s_vis{i:03}") for i in range(30)]
        codes = [status(_hear(plug, 0.5)) for plug in plugs]
        assert codes.count(101) == 7
        assert codes.count(403) == 23
        for plug in plugs:
            plug.close()
        deadline = time.monotonic() + 40
        while _threads(lab) > before + 2 and time.monotonic() < deadline:
            time.sleep(0.5)
        assert _threads(lab) <= before + 2
        first.close()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.0, 0.7, 3.0])
def test_it_ends_within_two_seconds(
    serve: Callable[..., Any], number: signal.Signals, after: float
) -> None:
    with serve("synthetic:seren:jobs=100000") as lab:
        lab.enter()
        plugs = [_join(lab, f"s_busy{i:02}") for i in range(3)]  # each flies 200,000 jobs
        try:
            time.sleep(after)
            begun = time.monotonic()
            lab.process.send_signal(number)
            assert lab.process.wait(30) == 128 + number
            assert time.monotonic() - begun < 2
        finally:
            for plug in plugs:
                plug.close()
