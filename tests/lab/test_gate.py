"""The lab's gate, without what stands behind it: who is let in, and what a browser may do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from windtunnel.lab.gate import TABS, Gate, Tab

OWN = "127.0.0.1:8910"
PAGE = b"<html><script data-x>run()</script><script src='/assets/a.js'></script></html>"


async def server(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """A server that gives everything to everybody, as marimo's does."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass
        return
    headers = [(b"Access-Control-Allow-Origin", b"*"), (b"content-length", b"%d" % len(PAGE))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": PAGE[:9], "more_body": True})
    await send({"type": "http.response.body", "body": PAGE[9:]})


class Answer:
    """What came back: ``status``, ``headers``, ``body``; of a websocket, the messages' types."""

    def __init__(self, sent: list[dict[str, Any]]) -> None:
        self.types = [message["type"] for message in sent]
        self.status = sent[0].get("status")
        self.headers = {name.lower().decode(): value for name, value in sent[0].get("headers", ())}
        self.body = b"".join(message.get("body", b"") for message in sent)


def ask(
    gate: Gate, path: str = "/", method: str = "GET", kind: str = "http", **headers: str
) -> Answer:
    """Ask for a path; a header whose name has an underscore here has a hyphen there."""
    path, _, query = path.partition("?")
    given = {"host": OWN, **{name.replace("_", "-"): value for name, value in headers.items()}}
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items() if value],
    }
    if kind == "websocket":
        del scope["method"]
    messages = iter(({"type": f"{kind}.connect"}, {"type": f"{kind}.disconnect", "code": 1000}))
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(gate(scope, receive, send))
    return Answer(sent)


@pytest.fixture
def gate() -> Gate:
    return Gate(server, 8910)


@pytest.fixture
def cookie(gate: Gate) -> str:
    """The cookie of the browser that opened the printed address."""
    answer = ask(gate, f"/?token={gate.token}")
    assert answer.status == 200
    assert PAGE not in answer.body
    name, *words = answer.headers["set-cookie"].decode().split("; ")
    assert words == ["Path=/", "HttpOnly", "SameSite=Strict"]
    return name


def test_the_printed_address_opens_the_lab_once(gate: Gate, cookie: str) -> None:
    assert ask(gate, cookie=cookie).body == PAGE
    assert ask(gate, f"/?token={gate.token}").status == 403  # another browser
    assert ask(gate, f"/?token={gate.token}", cookie=cookie).status == 200  # the same one
    assert gate.token not in cookie


@pytest.mark.parametrize(
    "cookie", ["", "windtunnel_lab_8910=", "windtunnel_lab_8910=é", "a=b; windtunnel_lab_1=x"]
)
@pytest.mark.parametrize("path", ["/", "/assets/a.js", "/@file/1", "/health", "/no", "/?token="])
def test_without_the_cookie_nothing_is_shown(gate: Gate, path: str, cookie: str) -> None:
    answer = ask(gate, path, cookie=cookie)
    assert answer.status == 403
    assert PAGE not in answer.body
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "host",
    ["", "evil.com", "evil.com:8910", "127.0.0.1", "127.0.0.1:80", "127.0.0.1:8910.evil.com"],
)
def test_another_name_of_this_machine_is_refused(gate: Gate, cookie: str, host: str) -> None:
    assert ask(gate, cookie=cookie, host=host).status == 421
    assert ask(gate, f"/?token={gate.token}", host=host).status == 421
    kept = ask(gate, "/ws", kind="websocket", cookie=cookie, host=host, origin=f"http://{host}")
    assert kept.types == ["websocket.close"]


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.com"},
        {"origin": "null"},
        {"origin": "https://127.0.0.1:8910"},
        {"origin": "http://127.0.0.1:8911"},
        {"origin": "http://localhost:8910"},  # another origin than the host that was asked
        {"origin": f"http://{OWN}", "sec_fetch_site": "cross-site"},
        {"origin": f"http://{OWN}", "sec_fetch_site": "same-site"},
        {"origin": ""},
    ],
)
def test_another_page_is_refused_even_with_the_cookie(
    gate: Gate, cookie: str, headers: dict[str, str]
) -> None:
    post = ask(gate, "/api/kernel/function_call", "POST", cookie=cookie, **headers)
    assert post.status == 403
    assert ask(gate, "/ws", kind="websocket", cookie=cookie, **headers).types == ["websocket.close"]
    if headers["origin"]:
        assert ask(gate, "/", "OPTIONS", cookie=cookie, **headers).status == 403
        assert ask(gate, cookie=cookie, **headers).status == 403


def test_two_hosts_or_origins_are_none(gate: Gate, cookie: str) -> None:
    assert ask(gate, cookie=cookie, Host="evil.com").status == 421
    assert ask(gate, cookie=cookie, origin=f"http://{OWN}", Origin="http://evil.com").status == 403


@pytest.mark.parametrize("path", ["/api/kernel/run", "/terminal/ws", "/api/files/list_files"])
def test_what_the_page_does_not_need_is_shut(gate: Gate, cookie: str, path: str) -> None:
    own = {"cookie": cookie, "origin": f"http://{OWN}"}
    assert ask(gate, path, "POST", **own).status == 404
    assert ask(gate, path, kind="websocket", **own).types == ["websocket.close"]


def test_the_browser_may_load_nothing_and_other_sites_learn_nothing(
    gate: Gate, cookie: str
) -> None:
    for answer in (ask(gate, cookie=cookie), ask(gate, "/assets/a.js", cookie=cookie), ask(gate)):
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert answer.headers["x-content-type-options"] == b"nosniff"
        assert answer.headers["cache-control"] == b"no-store"
        assert b"default-src 'none'" in answer.headers["content-security-policy"]
    policy = ask(gate, cookie=cookie).headers["content-security-policy"].decode()
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    # echo -n 'run()' | openssl dgst -sha256 -binary | base64
    assert scripts == "script-src 'self' 'sha256-AvyuiL0SD1mVY3NNxR+V2uo+lhk6RMFrytWmRt6CrJQ='"
    assert "http" not in policy
    assert policy.count("://") == policy.count(f"ws://{OWN}") == 1
    assert "frame-ancestors 'none'" in policy


def test_so_many_tabs_and_no_more(gate: Gate, cookie: str) -> None:
    own = {"cookie": cookie, "origin": f"http://{OWN}"}
    assert "websocket.accept" in ask(gate, "/ws", kind="websocket", **own).types
    assert not gate._tabs  # it was closed
    gate._tabs = {number: Tab("s", 0.0) for number in range(TABS)}
    assert ask(gate, "/ws", kind="websocket", **own).types == ["websocket.close"]
    assert ask(gate, cookie=cookie).status == 503
    assert ask(gate, "/assets/a.js", cookie=cookie).status == 200


def test_an_idle_tab_is_ended(cookie: str, gate: Gate) -> None:
    gate._idle = 0.05
    sent: list[str] = []

    async def receive() -> dict[str, Any]:
        if not sent:
            return {"type": "websocket.connect"}
        await asyncio.sleep(60)
        raise AssertionError("it was not ended")

    async def send(message: dict[str, Any]) -> None:
        sent.append(message["type"])

    headers = [(b"host", OWN.encode()), (b"origin", f"http://{OWN}".encode())]
    headers.append((b"cookie", cookie.encode()))
    scope = {"type": "websocket", "path": "/ws", "query_string": b"", "headers": headers}
    asyncio.run(gate(scope, receive, send))
    assert sent == ["websocket.accept", "websocket.close"]
    assert not gate._tabs


def test_a_tab_in_which_something_is_moved_is_not_idle(cookie: str, gate: Gate) -> None:
    gate._tabs = {1: Tab("s_a", 0.0), 2: Tab("s_b", 0.0)}
    own = {"cookie": cookie, "origin": f"http://{OWN}", "marimo_session_id": "s_b"}
    ask(gate, "/api/kernel/set_ui_element_value", "POST", **own)
    assert gate._tabs[1].moved == 0
    assert gate._tabs[2].moved > 0
