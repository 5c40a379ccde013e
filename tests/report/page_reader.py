"""Pages as the tests read them: well-formed, self-contained, harmless."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_VOID = {"meta", "br", "img", "input", "hr", "link"}


class Reader(HTMLParser):
    """Collects tags, attributes and text; checks that every element is closed."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def read_alone(html: str) -> Reader:
    """Return a page read, which must need nothing from anywhere and run nothing."""
    reader = Reader(html)
    assert reader.open == []
    for tag, attrs in reader.tags:
        assert tag not in {"script", "img", "link", "iframe", "object", "a", "image"}
        assert not {"src", "srcset", "href", "xlink:href", "action", "data"} & set(attrs)
        assert not [name for name in attrs if name.startswith("on")]
        for value in attrs.values():
            for target in re.findall(r"url\(([^)]*)\)", value or ""):
                assert target.startswith("#")
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    return reader
