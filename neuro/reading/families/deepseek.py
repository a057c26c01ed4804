"""DeepSeek: V3 (JSON in a fence), V3.1 (JSON behind the name), and DSML (``invoke``) from V3.2 on."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Cursor, Family, read_invocations

_BAR, _GAP = "[｜|]", r"(?:\\?_|▁| )"
_DSML = rf"{_BAR}{{1,2}}\s*DSML\s*{_BAR}{{1,2}}\s*"


def _mark(*words: str) -> str:
    return f"<{_BAR}{_GAP.join(words)}{_BAR}>"


_BEGIN, _END = _mark("tool", "call", "begin"), _mark("tool", "call", "end")
_SECTION_END = _mark("tool", "calls", "end")
_TURN_END = _mark("end", "of", "sentence")


def read(at: Cursor) -> None:
    while True:
        at.begin()
        if not at.take(_BEGIN):
            break
        name = at.need(rf"({NAME})\s*{_mark('tool', 'sep')}", "the name of the tool")[1]
        if name == "function" and (found := at.take(rf"({NAME})(?=\s*[`{{])")):
            name = found[1]
        at.add(name, at.object(_END))
        at.take(_END)
    at.take(_SECTION_END)


def read_dsml(at: Cursor) -> None:
    read_invocations(at, _DSML)
    at.ends(rf"</{_DSML}(?:tool|function)_calls>")


FAMILIES = (
    Family(
        "DeepSeek",
        mark=rf"{_mark('tool', 'calls', 'begin')}|(?=<｜tool▁call▁begin｜>)",
        read=read,
        ends=(_SECTION_END, _TURN_END, rf"<{_BAR}Assistant{_BAR}>"),
        results=(_mark("tool", "outputs?", "begin"), rf"<{_BAR}User{_BAR}>"),
        shape="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    Family(
        "DSML",
        mark=rf"<{_DSML}(?:tool|function)_calls>|(?=</?{_DSML}\w)",
        read=read_dsml,
        shape='<｜DSML｜tool_calls><｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">…',
    ),
)
