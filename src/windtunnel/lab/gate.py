"""The lab's gate: who is let in, what may be asked for, and what a browser may do with the page.

Any web site open in the same browser can send requests to this machine. So each request must name
this server and come from its own page (``Host``, ``Origin``, ``Sec-Fetch-Site``), and carry a
cookie that only whoever saw the printed address can have got. (OWASP, Cross-Site WebSocket
Hijacking; Fetch Metadata, W3C.)
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import secrets
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Message = dict[str, Any]
    Receive = Callable[[], Awaitable[Message]]
    Send = Callable[[Message], Awaitable[None]]
    App = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

#: Tabs that may be open at once.
TABS = 8
#: A tab in which nothing was moved for so long is ended, s.
IDLE = 3600.0
#: What the page asks its server for; all else that the server could do is shut.
_PATHS = frozenset(
    {
        *("/", "/ws", "/health", "/favicon.ico", "/manifest.json", "/public-files-sw.js"),
        *(f"/api/kernel/{name}" for name in ("instantiate", "set_ui_element_value")),
        *("/api/kernel/function_call", "/api/kernel/set_model_value"),
    }
)
_FOLDERS = ("/assets/", "/@file/")
_SAFE = frozenset({"GET", "HEAD"})
_INLINE = re.compile(rb"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
_ASK = "Open the whole address that windtunnel lab printed; it opens the lab once.\n"
_ENTERED = (
    b'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=/">'
    b'<title>windtunnel lab</title><a href="/">windtunnel lab</a>\n'
)


@dataclass
class Tab:
    """A tab that is open.

    Attributes:
        session: how its requests call it.
        moved: when something was moved in it last, s of `time.monotonic`.
    """

    session: str
    moved: float


class Gate:
    """Stands before a server's application (ASGI 3).

    Args:
        app: what is let through to.
        port: where this machine listens.
        idle: a tab in which nothing was moved for so long is ended, s.

    Attributes:
        token: what the printed address carries; it opens the lab to one browser, once.
    """

    def __init__(self, app: App, port: int, *, idle: float = IDLE) -> None:
        self.token = secrets.token_urlsafe(32)
        self._app = app
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        # Cookies know no ports: one lab must not lock another out.
        self._name = f"windtunnel_lab_{port}"
        self._secret = secrets.token_urlsafe(32)
        self._spent = False
        self._idle = idle
        self._tabs: dict[int, Tab] = {}

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if self._enters(scope):
            await _answer(send, 200, _ENTERED, self._cookie_header())
        elif (refusal := self._refusal(scope)) is not None:
            await _refuse(scope, receive, send, *refusal)
        elif scope["type"] == "websocket":
            await self._tab(scope, receive, send)
        else:
            self._note_move(scope)
            await self._app(scope, receive, _guarded(send, scope))

    def _enters(self, scope: dict[str, Any]) -> bool:
        """Return whether a request opens the lab with the printed address; that spends it."""
        if scope["type"] != "http" or scope["path"] != "/" or not self._is_addressed(scope):
            return False
        given = parse_qs(scope["query_string"].decode("ascii", "replace")).get("token", [""])
        if len(given) != 1 or not _same(given[0], self.token):
            return False
        if self._spent and not self._is_known(scope):
            return False
        self._spent = True
        return True

    def _is_addressed(self, scope: dict[str, Any]) -> bool:
        """Return whether a request names this server and no other."""
        hosts = list(_values(scope, b"host"))
        return len(hosts) == 1 and hosts[0] in self._hosts

    def _refusal(self, scope: dict[str, Any]) -> tuple[int, str] | None:
        """Return why a request is refused: a status and words; None where it is not."""
        if not self._is_addressed(scope):
            return 421, "This is windtunnel's lab on this machine, and no other server.\n"
        if not _is_from_own_page(scope):
            return 403, "The lab answers its own page alone.\n"
        if not self._is_known(scope):
            return 403, _ASK
        path = scope["path"]
        if path not in _PATHS and not path.startswith(_FOLDERS):
            return 404, "The lab has nothing there.\n"
        if path in {"/", "/ws"} and len(self._tabs) >= TABS:
            return 503, f"The lab is open in {TABS} tabs, which is all it serves: close one.\n"
        return None

    def _is_known(self, scope: dict[str, Any]) -> bool:
        """Return whether a request carries the lab's cookie."""
        for line in _values(scope, b"cookie"):
            for part in line.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self._name and _same(value, self._secret):
                    return True
        return False

    def _cookie_header(self) -> tuple[bytes, bytes]:
        text = f"{self._name}={self._secret}; Path=/; HttpOnly; SameSite=Strict"
        return b"set-cookie", text.encode()

    def _note_move(self, scope: dict[str, Any]) -> None:
        """Note that something was moved in the tab that a request comes from."""
        if scope["method"] not in _SAFE:
            sessions = set(_values(scope, b"marimo-session-id"))
            for tab in self._tabs.values():
                if tab.session in sessions:
                    tab.moved = time.monotonic()

    async def _tab(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serve a tab's websocket until it is closed, or nothing was moved for long."""
        asked = parse_qs(scope["query_string"].decode("ascii", "replace"))
        tab = Tab(asked.get("session_id", [""])[0], time.monotonic())

        async def heard() -> Message:
            while True:
                left = tab.moved + self._idle - time.monotonic()
                try:
                    return await asyncio.wait_for(receive(), max(left, 0.0))
                except TimeoutError:
                    if tab.moved + self._idle <= time.monotonic():
                        await send({"type": "websocket.close", "code": 1001})
                        return {"type": "websocket.disconnect", "code": 1001}

        self._tabs[id(tab)] = tab
        try:
            await self._app(scope, heard, send)
        finally:
            del self._tabs[id(tab)]


def _is_from_own_page(scope: dict[str, Any]) -> bool:
    """Return whether a request comes from the page itself, or from the browser's user."""
    origins = list(_values(scope, b"origin"))
    own = f"http://{next(_values(scope, b'host'))}"
    changes = scope["type"] == "websocket" or scope["method"] not in _SAFE
    if origins != [own] and (origins or changes):
        return False
    return all(site in {"same-origin", "none"} for site in _values(scope, b"sec-fetch-site"))


def _values(scope: dict[str, Any], name: bytes) -> Iterator[str]:
    """Yield the values of a header."""
    return (value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name)


def _same(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode(), wanted.encode())


async def _refuse(
    scope: dict[str, Any], receive: Receive, send: Send, status: int, words: str
) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})  # before it opens: status 403
    else:
        await _answer(send, status, words.encode(), (b"connection", b"close"))


async def _answer(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    kind = b"text/html; charset=utf-8" if status == 200 else b"text/plain; charset=utf-8"  # noqa: PLR2004 - OK
    fields = [(b"content-type", kind), (b"content-length", str(len(body)).encode()), *headers]
    fields += _protection(b"default-src 'none'")
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body})


def _guarded(send: Send, scope: dict[str, Any]) -> Send:
    """Return a ``send`` that tells the browser what the page may do, and no other site anything."""
    start: Message = {}
    pieces: list[bytes] = []
    whole = scope["path"] == "/"
    host = next(_values(scope, b"host"))

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
            if not whole:
                await send(_protected(start, b"", host))
        elif not whole:
            await send(message)
        else:  # the page itself: the scripts that stand in it, and no others, may run
            pieces.append(message.get("body", b""))
            if not message.get("more_body", False):
                page = b"".join(pieces)
                await send(_protected(start, page, host))
                await send({"type": "http.response.body", "body": page})

    return guarded


def _protected(start: Message, page: bytes, host: str) -> Message:
    kept = [
        (name, value)
        for name, value in start["headers"]
        if not name.lower().startswith((b"access-control-", b"content-security-policy"))
        and name.lower() not in {b"cache-control", b"server"}
    ]
    return {**start, "headers": kept + _protection(_page_policy(page, host))}


def _page_policy(page: bytes, host: str) -> bytes:
    """Return the policy of a page of ours: nothing remote, and no script but its own."""
    # Not every browser counts a websocket of the same server as its own.
    sockets = b"ws://" + host.encode()
    hashes = b"".join(
        b" 'sha256-" + base64.b64encode(hashlib.sha256(text).digest()) + b"'"
        for text in dict.fromkeys(_INLINE.findall(page))
    )
    return (
        b"default-src 'none'; script-src 'self'" + hashes + b"; "
        b"style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
        b"connect-src 'self' " + sockets + b"; worker-src 'self' blob:; manifest-src 'self'; "
        b"base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
    )


def _protection(policy: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-security-policy", policy),
        (b"cache-control", b"no-store"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
    ]
