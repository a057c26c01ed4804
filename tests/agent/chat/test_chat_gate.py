"""Gates over ``quoth chat``: whatever a gate does, each message has reply, sentence and audit row."""

from __future__ import annotations

import json
from pathlib import Path

from sentences import A_GATE_MUST_ANSWER, IT_DID_NOT_ANSWER_WITHIN
from words import files, quoth

GATE = """
(import asyncio  quoth [GateDecision])
(defn :async check [tool call ctx]
  (setv wanted (get call.form.args "text"))
  (cond
    (= wanted "yes")    (GateDecision True)
    (= wanted "no")     (GateDecision False "it is late")
    (= wanted "raises") (raise (KeyError "x"))
    (= wanted "slow")   (await (asyncio.sleep 60))
    (= wanted "late")   (try
                          (await (asyncio.sleep 60))
                          (except [asyncio.CancelledError]
                            (GateDecision True)))
    True                wanted))
"""
TOOL = """
(def-cognitive-tool {0}
  "Do something behind a gate."
  :parameters [text {{:type str}}]
  :effects [:reads]
  :tag "{1}"
  :gate True
  :gate-failure :{0}
  :body (do (.say ctx f"Done: {{text}}") None))
"""
TOOLS = "(require quoth [def-cognitive-tool])" + TOOL.format("open", "OPEN") + TOOL.format("closed", "CLOSED")
MODEL = """
(defn reply [messages]
  (setv [tool what] (.split (get (.splitlines (get (get messages -1) "content")) 0)))
  f"So be it.\\n{(.upper tool)}: {what}")
"""
LATE = f"{IT_DID_NOT_ANSWER_WITHIN} 2 s"
GARBAGE = f'it answered \'garbage\'; {A_GATE_MUST_ANSWER} GateDecision, (allow), (ask "why") or (deny "why")'
FAILURES = {"raises": "KeyError: 'x'", "slow": LATE, "late": LATE, "garbage": GARBAGE}


def expected(tool: str, what: str) -> tuple[str, str, str]:
    """What a person is told, and status and gate of the audit row."""
    if what == "yes":
        return "Done: yes", "ok", "allow"
    if what == "no":
        return f"{tool} was denied: it is late.", "denied", "deny: it is late"
    why = FAILURES[what]
    if tool == "open":
        return f"Done: {what}", "ok", f"failed open: {why}"
    told = "KeyError" if what == "raises" else why
    return f"closed was denied: the gate failed ({told}).", "denied", f"deny: the gate failed ({why})"


def test_a_gate_may_do_what_it_likes(tmp_path: Path) -> None:
    """Each case in a chat of its own, so that the slow ones wait side by side."""
    files(tmp_path, {"gate.hy": GATE, "tools.hy": TOOLS, "model.hy": MODEL})
    cases = [(tool, what) for what in ("yes", "no", *FAILURES) for tool in ("closed", "open")]
    given = [
        {"id": 1, "user": "ann", "chat": f"{tool}_{what}", "text": f"{tool} {what}"} for tool, what in cases
    ]
    ended = quoth(
        *("chat", "--gateway", "stdio", "--model", "scripted:model.hy"),
        *("--tools", "tools.hy", "--gate", "gate.hy"),
        cwd=tmp_path,
        stdin="\n".join(map(json.dumps, given)),
    )
    assert ended.code == 0, ended.err
    told: dict[str, list[tuple[str, str]]] = {}
    for line in map(json.loads, ended.out.splitlines()):
        told.setdefault(f"chat-{line['chat']}", []).append((line["kind"], line["text"]))
    audit = quoth("audit", "--json", cwd=tmp_path).out.splitlines()
    rows = {row["session"]: (row["status"], row["gate"]) for row in map(json.loads, audit)}
    wanted = {f"chat-{tool}_{what}": expected(tool, what) for tool, what in cases}
    assert told == {chat: [("reply", "So be it."), ("followup", says)] for chat, (says, *_) in wanted.items()}
    assert rows == {chat: (status, gate) for chat, (_, status, gate) in wanted.items()}
