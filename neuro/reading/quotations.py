"""Where in a reply a quotation, a comment or a piece of code is open, so that a tag line in it is no call.

Knows marks of prose, Markdown and HTML; it must not know tags or calls. A quotation ends with its paragraph.
A comment and an element of HTML last until they are closed; in a comment or in code nothing else counts.
"""

from __future__ import annotations

import re

# Each mark that opens a quotation, with those that close it.
_CLOSERS = {"“": "”", "„": "“”", "«": "»", "‹": "›", "‚": "‘", "‘": "’", "「": "」", "『": "』"}
_COMMENT = "-->"
_ELEMENTS = "blockquote|details|pre|script|style|template|textarea|xmp"
_MARK = re.compile(
    rf"""
      (?P<paragraph> \n[ \t\r]*\n )
    | (?P<comment> <!-- | --> )
    | (?P<code> (?<!`)``+ )                                   # one alone is often left open, or an accent
    | ^[ \t]*<(?P<element> /?(?:{_ELEMENTS}) )\b
    | </(?P<end> {_ELEMENTS} )\b
    | (?P<straight> " )
    | (?P<mark> [“”„«»‹›‚‘「」『』] | ’(?!\w) )                # behind it a letter: don’t
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_OPENS = re.compile(r'(?<![\w"”\\])"(?=\w)')  # 5" is a length
_FENCE = re.compile(r"[ \t]*```")


class Quotations:
    """What is open where the text was read to."""

    def __init__(self, read_to: int = 0) -> None:
        self.read_to = read_to  # in the whole text
        self._closers: list[str] = []  # of what is open, the innermost last

    def is_open(self, *, plainly: bool = False) -> bool:
        """Whether anything is open; ``plainly``: but what is often left open, a straight quote or code."""
        return any(not plainly or closer[0] not in '"`' for closer in self._closers)

    def read(self, text: str, end: int, base: int = 0) -> None:
        """Read on to the beginning of a line, ``end``, in a text that begins at ``base`` of the whole one."""
        begin = max(0, self.read_to - base)
        for found in _MARK.finditer(text, begin, end):
            self._meet(found, text)
        self.read_to = max(self.read_to, end + base)

    def _meet(self, found: re.Match[str], text: str) -> None:
        mark, inner = found[0].lstrip().lower(), self._closers[-1] if self._closers else ""
        kind = found.lastgroup
        if kind in ("element", "end"):
            self._element((found["element"] or f"/{found['end']}").lower(), inner)
        elif inner == _COMMENT or inner[:1] == "`":
            if mark == inner:
                self._closers.pop()
        elif kind == "paragraph":
            self._closers = [closer for closer in self._closers if closer[0] == "/"]
        elif kind == "comment":
            if mark != _COMMENT:
                self._closers.append(_COMMENT)
        elif kind == "code":
            if not _FENCE.match(text, text.rfind("\n", 0, found.start()) + 1):
                self._closers.append(mark)
        elif inner and mark in inner:
            self._closers.pop()
        elif kind == "straight":
            if _OPENS.match(text, found.start()):
                self._closers.append(mark)
        elif mark in _CLOSERS:
            self._closers.append(_CLOSERS[mark])

    def _element(self, name: str, inner: str) -> None:
        if inner == _COMMENT or inner[:1] == "`":
            return
        if name[0] != "/":
            self._closers.append(f"/{name}")
        elif name in self._closers:
            del self._closers[self._closers.index(name) :]
