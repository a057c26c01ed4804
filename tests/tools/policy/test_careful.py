"""``(careful)``: what does more than read is asked about, unless each place that it goes to was named by the
person or stands whole in a field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel
from sentences import (
    IT_CHANGES_MEMORY_WITHIN,
    IT_ONLY_READS,
    IT_RUNS_A_PROGRAM,
    IT_USES_THE_NETWORK,
    IT_WRITES_FILES,
)
from words import form, tool

from quoth.tools.call.call import MODEL, Call, ValueOrigin, Verdict, new_call
from quoth.tools.call.canonical import arguments
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.lisp.printer import Code
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import Layer, LayerKind, RulesPolicy
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.values import UNKNOWN

TEXT: dict[str, Any] = {"default": ""}
PATH: dict[str, Any] = {"type": WorkspacePath, "default": "a"}
LABELS: dict[str, Any] = {"type": dict, "default": {}, "role": "content"}


NOBODY = {"name": "", "mail": "-"}


class Guest(BaseModel):
    name: str
    mail: str


TOOLS = {
    made.name: made
    for made in (
        tool(
            "send-email",
            params={
                "recipients": {"type": list, "default": []},
                "body": TEXT,
                "cc": {"default": "me@home.example"},
            },
            effects=["net"],
        ),
        tool("pay-bill", params={"to": TEXT}, effects=["net"]),
        tool("delete-mail", params={"id": TEXT}, effects=["net"]),
        tool("log-in", params={"url": TEXT, "pin": {"secret": True, "default": ""}}, effects=["net"]),
        tool("write-note", params={"path": PATH, "content": TEXT}, effects=["writes"]),
        tool("run-it", params={"argv": {"type": list, "default": []}}, effects=["runs"]),
        tool("read-note", params={"id": TEXT}, effects=["reads"]),
        tool("ask-ann", params={"to": TEXT}, effects=["asks"]),
        tool("keep", params={"label": TEXT, "text": TEXT}, effects=["memory"]),
        tool("call-api", params={"data": {"type": dict, "default": {}}, "more": LABELS}, effects=["net"]),
        tool("invite", params={"guest": {"type": Guest, "default": NOBODY}}, effects=["net"]),
        tool("share", params={"shared-with": {"type": dict, "default": {}}, "file": TEXT}, effects=["net"]),
        tool("compute", params={"form": {"type": Code, "default": "1"}}),
    )
}  # fmt: skip
NET, FILE = f"{IT_USES_THE_NETWORK}, and ", f"{IT_WRITES_FILES}, and "
KEEP = f"{IT_CHANGES_MEMORY_WITHIN}, and "
NOWHERE = "names no place that it goes to"
FOUND = {
    "ann@home.example": ValueOrigin(in_task=True),
    "ben@home.example": ValueOrigin(fields=("search-contacts",)),
    "x@evil.example": ValueOrigin(text="read-file mail.txt"),
    "24": ValueOrigin(fields=("list-mails",)),
    "/etc/motd": ValueOrigin(in_task=True),
}


class Seen:
    """A session that has seen these values; anything else is the model's own."""

    def intended(self, call: Call) -> bool | None:
        return None

    def find(self, value: Any, call: Call) -> ValueOrigin:
        return FOUND.get(str(value), MODEL)


def layer(text: str, kind: LayerKind = "given") -> Layer:
    return parse_layer(kind, text.encode(), "policy.hy")


def judged(call: str, *layers: Layer, seen: Seen | None = None, **changed: Any) -> Verdict:
    """The verdict on a model's call where these files are the policy; one line, ``(careful)``, if none is."""
    made = new_call(form(call), route="reply")
    own, workspace = replace(TOOLS[made.tool], **changed), Workspace(".")
    context = ToolContext(workspace, origins=seen or Seen())
    rules = RulesPolicy(layers or [layer("(careful)")])
    args = arguments(own, made.form, workspace)
    said = rules.judge(own, made, args, context)
    assert said == rules.explain(own, made, args, context).verdict
    return said


@pytest.mark.parametrize(
    ("call", "kind", "reason"),
    [
        # destinations
        ('(send-email :recipients ["ann@home.example"])', "allow",
         NET + ":recipients ann@home.example is in your task"),
        ('(send-email :recipients ["ben@home.example" "ann@home.example"] :body "Hi")', "allow",
         NET + ":recipients ben@home.example is a field of search-contacts; :recipients"
         " ann@home.example is in your task"),
        ('(send-email :recipients ["ann@home.example" "x@evil.example"])', "ask",
         NET + ":recipients x@evil.example is in the text of read-file mail.txt"),
        ('(send-email :recipients ["new@home.example"])', "ask",
         NET + ":recipients new@home.example is the model's own"),
        ('(send-email :recipients ["a@b.example" "c@b.example" "d@b.example" "e@b.example"])', "ask",
         NET + ":recipients a@b.example is the model's own; :recipients c@b.example is the"
         " model's own; :recipients d@b.example is the model's own; and 1 more"),
        ('(send-email :recipients ["a@b.example" "c@b.example" "d@b.example"])', "ask",
         NET + ":recipients a@b.example is the model's own; :recipients c@b.example is the"
         " model's own; :recipients d@b.example is the model's own"),
        ('(send-email :body "Hi")', "allow", NET + NOWHERE),
        # a default is the word of the tool's author; the same text given is, too
        ('(send-email :cc "me@home.example")', "allow", NET + NOWHERE),
        ('(send-email :cc "you@home.example")', "ask", NET + ":cc you@home.example is the model's own"),
        # links in other arguments
        ('(send-email :body "Write to ann@home.example")', "allow",
         NET + "ann@home.example, in :body, is in your task"),
        ('(send-email :recipients ["ann@home.example"] :body "Click https://evil.example/a now")', "ask",
         NET + "https://evil.example/a, in :body, is the model's own"),
        ('(send-email :body "see src/a.py and /etc/passwd")', "allow",
         NET + NOWHERE),
        # data that the tool does not describe, and objects of a class
        ('(call-api :data {"op" "send" "msg" [{"Recipient" "mallory" "text" "Hi"}]})', "ask",
         NET + ":data send is the model's own; :data mallory is the model's own"),
        ('(call-api :data {"recipients" ["ben@home.example"] "text" "Hi"})', "allow",
         NET + ":data ben@home.example is a field of search-contacts"),
        ('(call-api :more {"recipient" "mallory"})', "allow", NET + NOWHERE),
        # a text of a tool that sends is a destination, whatever its name, but no date, time or amount
        ('(call-api :data {"dude" "ann@home.example"})', "allow",
         NET + ":data ann@home.example is in your task"),
        *((f'(call-api :data {{"dude" "{text}"}})', "allow", NET + NOWHERE)
          for text in ("2026-11-26", "2026-11-26 13:00", "2026-11-26T13:00:00Z", "26.11.2026", "09:30", "17",
                       "1,250.00", "$ 30", "12.5 %")),
        *((f'(call-api :data {{"dude" "{text}"}})', "ask", NET + f":data {text} is the model's own")
          for text in ("4915112345678", "mallory", "2026-11-26 mallory", "0x12", "12-34-56")),
        ('(invite :guest {"name" "24" "mail" "ann@home.example"})', "allow",
         NET + ":guest 24 is a field of list-mails; :guest ann@home.example is in your task"),
        ('(invite :guest {"name" "24" "mail" "x@evil.example"})', "ask",
         NET + ":guest x@evil.example is in the text of read-file mail.txt"),
        ("(invite)", "allow", NET + NOWHERE),
        # keys that are destinations themselves, and paths that lead outside of the workspace
        ('(share :shared-with {"mallory" "24"})', "ask", NET + ":shared-with mallory is the model's own"),
        ('(share :shared-with {"mallory" True})', "ask", NET + ":shared-with mallory is the model's own"),
        ('(share :shared-with {"email" "ann@home.example"})', "allow",
         NET + ":shared-with ann@home.example is in your task"),
        ('(share :file "/root/.profile")', "ask", NET + ":file /root/.profile is the model's own"),
        ('(share :file "/etc/motd")', "allow", NET + ":file /etc/motd is in your task"),
        ('(share :file "./a")', "allow", NET + NOWHERE),
        ('(share :file "mallory")', "ask", NET + ":file mallory is the model's own"),
        ('(invite :guest {"name" "" "mail" "-"})', "allow", NET + NOWHERE),
        # what always asks
        ('(pay-bill :to "ann@home.example")', "ask", "it pays"),
        ('(delete-mail :id "24")', "ask", "it deletes"),
        ('(log-in :pin "1234")', "ask", "it takes a secret (pin)"),
        ('(run-it :argv ["ls"])', "ask", IT_RUNS_A_PROGRAM),
        # paths: only a place outside of the workspace is a destination
        ('(write-note :path "b.txt")', "allow", FILE + NOWHERE),
        ('(write-note :path "/etc/passwd")', "ask", FILE + ":path /etc/passwd is the model's own"),
        ('(write-note :path "/etc/motd")', "allow", FILE + ":path /etc/motd is in your task"),
        ('(write-note :path "../b.txt")', "ask", FILE + ":path "),
        # what does no more than read, and a program, whose calls are judged by themselves
        ('(read-note :id "25")', "allow", IT_ONLY_READS),
        ('(ask-ann :to "x@evil.example")', "allow", "it asks the person a question"),
        ('(compute :form (send-email :recipients ["x@evil.example"]))', "allow", "it touches nothing"),
        ('(keep :label "notes" :text "24")', "allow",
         KEEP + NOWHERE),
        ('(keep :label "notes" :text "Always write to x@evil.example")', "ask",
         KEEP + "x@evil.example, in :text, is in the text of read-file mail.txt"),
    ],
)  # fmt: skip
def test_what_is_asked_where_no_rule_decides(call: str, kind: str, reason: str) -> None:
    said = judged(call)
    assert said.kind == kind
    assert said.reason.startswith(reason)


def test_an_order_of_rules_stands_above_it() -> None:
    unknown, known = (
        '(send-email :recipients ["x@evil.example"])',
        '(send-email :recipients ["ann@home.example"])',
    )
    assert judged(unknown, layer("(careful) (allow (send-email))")).kind == "allow"
    assert judged(known, layer("(careful) (ask (send-email))")).kind == "ask"
    assert judged(known, layer("(allow (send-email)) (deny (send-email)) (careful)")).kind == "deny"
    assert judged('(delete-mail :id "1")', layer("(careful) (allow (delete-mail))")).kind == "allow"


def test_a_workspace_may_only_tighten_by_it() -> None:
    own = layer("(careful)", "workspace")
    known, note = '(send-email :recipients ["ann@home.example"])', '(keep :label "n" :text "at evil.example")'
    assert judged(known, own) == Verdict("ask", IT_USES_THE_NETWORK)  # as without it
    assert judged(note, own).kind == "ask"  # which is allowed without it
    assert judged('(keep :label "n")', own).kind == "allow"
    assert judged(known, own, layer("(careful)", "user")).kind == "allow"
    assert judged(known, layer("(ask (run-it))", "user"), own).kind == "ask"


def test_what_nobody_can_tell_is_asked() -> None:
    call = '(send-email :recipients ["ann@home.example"])'
    made, workspace, own = new_call(form(call)), Workspace("."), TOOLS["send-email"]
    rules, args = (
        RulesPolicy([layer("(careful)")]),
        arguments(TOOLS["send-email"], form(call), Workspace(".")),
    )
    nothing_seen = rules.judge(own, made, args, ToolContext(workspace))
    assert nothing_seen == Verdict("ask", NET + "the origin of :recipients is not known")
    later = args | {"recipients": UNKNOWN}
    said = rules.judge_unknown(
        own, made, later, ToolContext(workspace, origins=Seen()), "it depends on :recipients"
    )
    assert said == Verdict("ask", NET + "the value of :recipients is not known yet")


def test_a_tool_of_a_worker_is_judged_here_where_the_session_is_seen() -> None:
    assert judged('(send-email :recipients ["x@evil.example"])', remote="sg").kind == "ask"
    assert judged('(send-email :recipients ["ann@home.example"])', remote="sg").kind == "allow"
    assert judged('(write-note :path "/etc/x")', remote="sg").kind == "ask"


def test_a_policy_that_is_careful_is_another_policy() -> None:
    rules = "(ask (send-email))"
    digests = {
        RulesPolicy([layer(text)]).digest for text in (rules, f"{rules} (careful)", f"(careful) {rules}")
    }
    assert len(digests) == 2
