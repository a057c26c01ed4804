"""DeepSeek: V3 (JSON in a fence), V3.1 (JSON after the name), and DSML (``invoke``) from V3.2 on."""

from __future__ import annotations

from dataclasses import replace

from quoth.neuro.reading.markup import NAME, Family, invocations

_BAR, _GAP = "[｜|]", r"(?:\\?_|▁| )"
_DSML = rf"{_BAR}{{1,2}}\s*DSML\s*{_BAR}{{1,2}}\s*"


def _mark(*words: str) -> str:
    return f"<{_BAR}{_GAP.join(words)}{_BAR}>"


_BEGIN, _SEP, _END = (_mark("tool", *words) for words in (("call", "begin"), ("sep",), ("call", "end")))
_SECTION_END = _mark("tool", "calls", "end")

FAMILIES = (
    Family(
        "DeepSeek",
        mark=rf"{_mark('tool', 'calls', 'begin')}|(?=<｜tool▁call▁begin｜>)",
        call=rf"{_BEGIN}(?:\s*(?P<kind>function\s*{_SEP}\s*(?={NAME}\s*[`{{]))?+(?P<tool>{NAME})"
        rf"\s*(?(kind)(?=[`{{])|{_SEP}))?",
        end=_END,
        close=_SECTION_END,
        ends=(_SECTION_END, _mark("end", "of", "sentence"), rf"<{_BAR}Assistant{_BAR}>"),
        results=(_mark("tool", "outputs?", "begin"), rf"<{_BAR}User{_BAR}>"),
        shape="<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    ),
    replace(
        invocations("DSML", _DSML),
        mark=rf"<{_DSML}(?:tool|function)_calls>|(?=</?{_DSML}\w)",
        close=rf"</{_DSML}(?:tool|function)_calls>",
        shape='<｜DSML｜tool_calls><｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">…',
    ),
)
