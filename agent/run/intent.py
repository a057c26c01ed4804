"""Asks the model of a run which tools the task needs, before the run reads anything foreign: once for each
new text of the person, with the person's words and one line about each tool that does more than read.

The request contains nothing else, so no text that the run reads can change the answer. The answer is an
event; rules and ``(careful)`` judge by it (tools/policy).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from quoth.agent.run.models import OwnModel
from quoth.agent.run.run import Run, RunStoppedError
from quoth.neuro.backends.base import ModelError, Usage, tells_intent
from quoth.neuro.prompt.grammar import any_of_these
from quoth.tools.call.call import PROGRAMS, Call
from quoth.tools.errors import ToolError
from quoth.tools.lisp.forms import kebab
from quoth.tools.policy.limits import is_foreign, is_quiet
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import one_line, short

ASK = (
    "A person gave an assistant the words below. Say which of the listed tools the assistant must use to do "
    "what the person asks, and no others. Answer with their names, separated by commas, and nothing else. If "
    "it needs none of them, answer: none"
)
NONE = "none"
LINE, SHOWN = 80, 200  # maximum of characters about a tool, and of an unreadable answer in its event
REPLY_TOKENS = 200
_MARKS = re.compile(r"[\s,;`'\"*\[\](){}.]+")
_LABEL = re.compile(r"^\W*([\w-]+)(?::| [-–—]) (?!\W*(?:no|not|none|never|false|unneeded)\b).*$", re.M | re.I)


async def ask_intent(run: Run, calls: Sequence[Call]) -> None:
    """Ask the model before the first of these calls that may read something foreign, and again after new
    words of the person. If the run was shown foreign texts before, ask before its first call that does more
    than read. A resumed run has its recorded answer."""
    key = f"{run.session}/{run.name}/{run.state.step}.intent"
    if past := run.past.intents.get(key):
        usage = Usage(**past.pop(0).data.get("usage", {}))
        run.spend(usage)
        run.purse.recall(run.backend.name, usage, {}, live=run.log.live)
        return
    tools = _asked_about(run, calls)
    if not tools or not (words := run.log.session.new_words(run.user)):
        return
    try:
        said = await run.stoppably(_answer(run, words, tools))
    except RunStoppedError:
        return
    run.log.add("intent", said, parent=run.log.reply, key=key)


def _asked_about(run: Run, calls: Iterable[Call]) -> list[CognitiveTool]:
    """The tools that the model is asked about before these calls; empty if it is not asked."""
    policy = run.parts.door.policy
    wanted = isinstance(policy, RulesPolicy) and policy.wants_intent
    if not (wanted and run.log.live) or run.context.planning is not None:
        return []
    table = run.door.table.visible
    called = [tool for call in calls if (tool := table.find(call.tool)) is not None]
    exposed = run.spec.files or run.spec.data or run.state.known or run.log.session.asked_intent
    if not any(_may_read_foreign(tool) or (exposed and not is_quiet(tool)) for tool in called):
        return []
    if run.parts.backend is None or not tells_intent(run.parts.backend()):
        return []
    return [tool for tool in table if not is_quiet(tool)]


def _may_read_foreign(tool: CognitiveTool) -> bool:
    return is_foreign(tool) or tool.name == PROGRAMS


async def _answer(run: Run, words: str, tools: Sequence[CognitiveTool]) -> dict[str, Any]:
    """The data of the event: the tools asked about and those needed, or why that is not known; and the usage
    of the request."""
    used: list[Usage] = []
    names = [tool.name for tool in tools]
    told = "\n".join(f"{tool.name}: {one_line(tool.description, LINE)}" for tool in tools)
    backend = run.parts.backend
    assert backend is not None, "a live run has a model"
    model = OwnModel(backend, used.append, run.purse, run.tracer)
    prompt = f"The person's words:\n{words}\n\nThe tools:\n{told}"
    said: dict[str, Any] = {"asked": names}
    try:
        text = await model.complete(
            prompt, system=ASK, max_tokens=REPLY_TOKENS, grammar=any_of_these(names, NONE)
        )
    except (ToolError, ModelError) as error:
        said["text"] = short(str(error), SHOWN)
    else:
        needed = read_intent(text, names)
        said |= {"text": short(text.strip(), SHOWN)} if needed is None else {"tools": needed}
    for usage in used:
        run.spend(usage)
        said["usage"] = {name: value for name, value in vars(usage).items() if value}
    return said


def read_intent(text: str, names: Iterable[str]) -> list[str] | None:
    """The tools that an answer names, in order; None if it says anything else. An answer may be its last
    line."""
    known = set(names)
    text = _LABEL.sub(lambda found: found[1] if kebab(found[1]) in known else found[0], text.strip())
    for part in (text, text.rpartition("\n")[2]):
        words = [word for word in _MARKS.split(part) if any(map(str.isalpha, word))]  # not - or 1.
        if [word.lower() for word in words] == [NONE]:
            return []
        if words and known.issuperset(map(kebab, words)):
            return list(dict.fromkeys(map(kebab, words)))
    return None
