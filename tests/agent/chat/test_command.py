"""``quoth chat``, as a process of its own: lines in and lines out, people who approve, and what survives the
end of the process, however that comes."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    IS_A_QUESTION_AND_IS,
    IT_WRITES_FILES,
    LEAVE_OUT,
    THE_LINE_HAS_NO_TEXT,
    THERE_IS_NO_COMMAND,
    THERE_IS_NO_SCRIPT_FILE,
    WANTS_A_YES_OR_A,
)
from words import CTRL_D, Running, Terminal, files, quoth, started, wait_until

# A model that says a tag for each command, and tools that write each use down. A use waits while there is a
# file named ``hold``.
MODEL = """
(defn reply [messages]
  (setv said (get (get messages -1) "content")
        word (get (.split (get (.splitlines said) 0)) 0)
        rest (.join " " (cut (.split (get (.splitlines said) 0)) 1 None)))
  (cond
    (= word "press")  f"So be it.\\nPRESS: {rest}"
    (= word "sign")   f"I ask.\\nSIGN: {rest}"
    (= word "both")   f"PRESS: {rest}\\nSIGN: {rest}"
    (and (= word "ask") (any (gfor  m messages  (= (get m "role") "tool"))))  "It is said."
    (= word "ask")    "(ask-person :question \\"Which?\\" :choices [\\"red\\" \\"blue\\"])"
    (= word "deed")   "(sign :text \\"deed\\")"
    (= word "think")  (do (import time pathlib [Path])
                          (.touch (Path "thinking"))
                          (while (.exists (Path "hold")) (time.sleep 0.005))
                          "Thought.")
    True              f"You say {said}."))
"""
TOOL = """
(def-cognitive-tool {0}
  "Write a text down."
  :parameters [text {{:type str}}]
  :effects [:writes]
  :tag "{1}"
  :body (do (import time pathlib [Path])
            (with [file (open "done.txt" "a")] (.write file f"{0} {{text}}\\n"))
            (while (.exists (Path "hold")) (time.sleep 0.005))
            (.say ctx f"Done: {{text}}")
            None))
"""
BOT = "(require quoth [def-cognitive-tool])\n" + TOOL.format("press", "PRESS") + TOOL.format("sign", "SIGN")
WORDS = ("chat", "--model", "scripted:model.hy", "--tools", "bot.hy", "--policy", "rules.hy")
STDIO = (*WORDS, "--gateway", "stdio", "--approvers", "ann,cleo")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path, {"model.hy": MODEL, "bot.hy": BOT, "rules.hy": "(allow (press))"})


def said(text: str, id: int | str = 1, chat: str = "7", user: str = "ben") -> dict[str, Any]:
    return {"id": id, "user": user, "chat": chat, "text": text}


def lines(*given: dict[str, Any]) -> str:
    return "".join(json.dumps(line) + "\n" for line in given)


def brief(line: dict[str, Any]) -> tuple[Any, str, str]:
    return line["id"], line["kind"], line["text"]


def heard(out: str) -> list[tuple[Any, str, str]]:
    return [brief(json.loads(line)) for line in out.splitlines()]


def done(here: Path) -> list[str]:
    path = here / "done.txt"
    return path.read_text().splitlines() if path.exists() else []


class Gateway:
    """A gateway at work."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self.process = running.process
        self.says = running.says

    def send(self, *given: dict[str, Any]) -> None:
        self._running.stdin.write(lines(*given))
        self._running.stdin.flush()

    def line(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._running.stdout.readline())
        return found

    def hears(self, number: int = 1) -> list[tuple[Any, str, str]]:
        return [brief(self.line()) for _ in range(number)]

    def ends(self) -> tuple[int, list[tuple[Any, str, str]]]:
        self._running.stdin.close()
        ended = self._running.ended()
        return ended.code, heard(ended.out)

    def is_killed(self) -> None:
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def serving(here: Path, *words: str) -> Iterator[Gateway]:
    with started(*STDIO, *words, cwd=here) as running:
        yield Gateway(running)


def test_lines_in_and_lines_out(here: Path) -> None:
    given = lines(
        said("press one"), said("hello", "a"), said("press two", 1, "8", "cleo"), {"id": 4}, said("x")
    )
    ended = quoth(*STDIO, cwd=here, stdin=given)
    assert ended.code == 0, ended.err
    found = [json.loads(line) for line in ended.out.splitlines()]
    assert [brief(line) for line in found if line["chat"] == "7"] == [
        (1, "reply", "So be it."),
        (1, "followup", "Done: one"),
        ("a", "reply", "You say hello."),
    ]
    assert [brief(line) for line in found if line["chat"] == "8"] == [
        (1, "reply", "So be it."),
        (1, "followup", "Done: two"),
    ]
    assert found[0] == {
        "id": 4,
        "chat": None,
        "kind": "error",
        "text": f"{THE_LINE_HAS_NO_TEXT}.",
        "calls": [],
    }
    calls = [line["calls"] for line in found if line["kind"] == "reply" and line["id"] == 1]
    assert [{"tool": "press", "status": "ok", "form": '(press :text "one")'}] in calls
    again = quoth(*STDIO, cwd=here, stdin=lines(said("press one"), said("press three", 5)))
    assert heard(again.out) == [(5, "reply", "So be it."), (5, "followup", "Done: three")]
    assert sorted(done(here)) == ["press one", "press three", "press two"]
    audit = [json.loads(line) for line in quoth("audit", "--json", cwd=here).out.splitlines()]
    assert sorted((row["user"], row["session"], row["route"]) for row in audit) == [
        ("ben", "chat-7", "chat"),
        ("ben", "chat-7", "chat"),
        ("cleo", "chat-8", "chat"),
    ]


def test_a_gateway_seldom_searches_for_garbage(here: Path) -> None:
    """Each search through everything holds up all chats."""
    told = 'f"Done: {(hy.I.gc.get-threshold)}"'
    files(here, {"bot.hy": BOT.replace('f"Done: {text}"', told)})
    ended = quoth(*STDIO, cwd=here, stdin=lines(said("press one")))
    assert heard(ended.out)[1] == (1, "followup", "Done: (700, 10, 100)")


def test_an_approver_decides_and_nobody_else(here: Path) -> None:
    with serving(here) as gateway:
        gateway.send(said("sign the deed"))
        assert gateway.hears() == [(1, "reply", "I ask.")]
        asked = gateway.line()
        assert (asked["id"], asked["kind"]) == (1, "asked")
        request = asked["request"]
        assert {**request, "id": ""} == {
            "id": "",
            "tool": "sign",
            "form": '(sign :text "the deed")',
            "user": "ben",
            "origins": [
                {"argument": "text", "origin": "task", "words": "in your task", "known": True, "aims": False}
            ],
            "reason": IT_WRITES_FILES,
        }
        approve = {"chat": "7", "approve": request["id"]}
        gateway.send(
            {**approve, "user": "ben"},
            {**approve, "user": "ann", "chat": "8"},
            said(f'{{"chat": "7", "user": "ann", "approve": "{request["id"]}"}}', 2),
        )
        refusals = [text for _, kind, text in sorted(gateway.hears(3), key=str) if kind == "error"]
        assert refusals == [
            f"Request {request['id']} does not belong to chat 8.",
            "ben may not decide requests here; the approvers are ann, cleo.",
        ]
        assert done(here) == []
        gateway.send({**approve, "user": "ann", "id": 3})
        assert sorted(gateway.hears(2), key=str) == [
            (1, "followup", "Done: the deed"),
            (3, "reply", 'Approved once: (sign :text "the deed")'),
        ]
        gateway.send(said("sign it again", 4))
        gateway.hears()
        gateway.send(
            {"chat": "7", "user": "cleo", "deny": gateway.line()["request"]["id"], "why": "Not yet."}
        )
        assert gateway.hears() == [(4, "followup", "sign was denied: the person said: Not yet.")]
        assert gateway.ends() == (0, [])
    assert done(here) == ["sign the deed"]


def test_whoever_is_asked_answers_and_an_answer_decides_nothing(here: Path) -> None:
    with serving(here, "--dialect", "call-form", "--after-tags", "continue") as gateway:
        gateway.send(said("ask me", 1), said("deed", 2, chat="8"))
        heard = sorted((gateway.line() for _ in range(4)), key=lambda line: (line["chat"], line["kind"]))
        asked, deed = heard[0], heard[2]
        request = asked["request"]
        assert (asked["text"], deed["request"]["tool"]) == ("Which?", "sign")
        assert {name: request[name] for name in ("kind", "question", "choices", "only", "user")} == {
            "kind": "question",
            "question": "Which?",
            "choices": ["red", "blue"],
            "only": False,
            "user": "ben",
        }
        answer = {"chat": "7", "answer": request["id"], "text": "2"}
        gateway.send(
            {**answer, "user": "dora"},
            {**answer, "user": "ben", "chat": "8"},
            {"chat": "8", "user": "ben", "answer": deed["request"]["id"], "text": "y"},
            {"chat": "7", "user": "ann", "approve": request["id"]},
        )
        assert {text for _, _, text in gateway.hears(4)} == {
            f"Request {deed['request']['id']} {WANTS_A_YES_OR_A}: quoth approve "
            f"{deed['request']['id']}, or: quoth deny {deed['request']['id']} --why TEXT",
            f"Request {request['id']} {IS_A_QUESTION_AND_IS}: quoth answer {request['id']} TEXT",
            f"Request {request['id']} does not belong to chat 8.",
            "dora may not decide requests here; the approvers are ann, cleo.",
        }
        gateway.send({**answer, "user": "ben", "id": 3})
        told = {id: text for id, _, text in gateway.hears(2)}
        assert told[3] == "Answered: Which? blue"
        assert told[1] == "It is said."
        assert gateway.ends()[0] == 0
    assert done(here) == []


def test_a_decision_by_a_command_counts_too(here: Path) -> None:
    with serving(here) as gateway:
        gateway.send(said("sign the deed"))
        gateway.hears()
        assert quoth("approve", gateway.line()["request"]["id"], cwd=here).code == 0
        assert gateway.hears() == [(1, "followup", "Done: the deed")]


# What survives kill -9: when the model thinks, in a body, and while a request waits.


def test_a_message_that_was_accepted_is_answered_by_the_next_process(here: Path) -> None:
    (here / "hold").touch()
    with serving(here) as gateway:
        gateway.send(said("think", 1), said("press two", 2))
        wait_until((here / "thinking").exists)
        gateway.is_killed()
    (here / "hold").unlink()
    ended = quoth(*STDIO, cwd=here, stdin=lines(said("think", 1), said("press three", 3)))
    assert heard(ended.out) == [
        (1, "reply", "Thought."),
        (2, "reply", "So be it."),
        (2, "followup", "Done: two"),
        (3, "reply", "So be it."),
        (3, "followup", "Done: three"),
    ]
    assert done(here) == ["press two", "press three"]


def test_a_call_that_was_broken_off_is_not_made_again_unasked(here: Path) -> None:
    (here / "hold").touch()
    with serving(here) as gateway:
        gateway.send(said("press one", 1))
        wait_until(lambda: done(here))
        gateway.is_killed()
    (here / "hold").unlink()
    with serving(here) as gateway:
        assert gateway.hears() == [(1, "reply", "So be it.")]
        asked = gateway.line()
        assert "begun before" in asked["text"]
        assert done(here) == ["press one"]
        gateway.send({"chat": "7", "user": "ann", "deny": asked["request"]["id"], "why": "It was done."})
        assert gateway.hears() == [(1, "followup", "press was denied: the person said: It was done.")]
        assert gateway.ends() == (0, [])
    assert done(here) == ["press one"]


def test_a_request_waits_through_a_new_start_and_the_calls_beside_it_are_not_made_again(here: Path) -> None:
    with serving(here) as gateway:
        gateway.send(said("both of them"))
        assert gateway.hears(2) == [(1, "reply", ""), (1, "followup", "Done: of them")]
        request = gateway.line()["request"]["id"]
        gateway.send(said("hello", 2))
        assert gateway.hears() == [(2, "reply", "You say hello.")]
        gateway.is_killed()
    with serving(here) as gateway:
        gateway.send({"chat": "7", "user": "ann", "approve": request})
        (told,) = gateway.hears()
        if told[0] == 2:  # the last line before the end may come twice
            (told,) = gateway.hears()
        assert told == (1, "followup", "Done: of them")
        assert gateway.ends() == (0, [])
    assert done(here) == ["press of them", "sign of them"]


def test_sigterm_ends_it_after_the_reply_in_work(here: Path) -> None:
    (here / "hold").touch()
    with serving(here) as gateway:
        gateway.send(said("think", 1), said("press two", 2))
        wait_until((here / "thinking").exists)
        gateway.process.send_signal(signal.SIGTERM)
        gateway.says("Finishing the current replies.")
        (here / "hold").unlink()
        assert gateway.ends() == (0, [(1, "reply", "Thought.")])
    assert heard(quoth(*STDIO, cwd=here).out) == [(2, "reply", "So be it."), (2, "followup", "Done: two")]


def test_a_second_signal_ends_it_at_once(here: Path) -> None:
    (here / "hold").touch()
    with serving(here) as gateway:
        gateway.send(said("press one", 1))
        wait_until(lambda: done(here))
        gateway.process.send_signal(signal.SIGTERM)
        gateway.says("A second signal ends the gateway at once")
        gateway.process.send_signal(signal.SIGTERM)
        assert gateway.process.wait(60) == 130
    assert done(here) == ["press one"]


def test_lines_that_nobody_reads_are_told_at_the_next_start(here: Path) -> None:
    (here / "hold").touch()
    with started(*STDIO, cwd=here) as running:
        gateway = Gateway(running)
        gateway.send(said("think", 1))
        wait_until((here / "thinking").exists)
        running.stdout.close()
        (here / "hold").unlink()
        assert running.process.wait(60) == 1
    assert heard(quoth(*STDIO, cwd=here).out) == [(1, "reply", "Thought.")]


# How it does not start


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            "--gateway stdio --listen unix:x",
            "Argument --listen: not allowed with argument --gateway. See: quoth chat --help",
        ),
        (
            "--gateway irc",
            "Argument --gateway: invalid choice: 'irc' (choose from 'stdio'). See: quoth chat --help",
        ),
        ("--listen tcp:80", "--listen takes unix:PATH, such as unix:chat.sock, not tcp:80."),
        ("--listen unix:bot.hy", "bot.hy exists and is not a socket."),
        (
            "--gateway stdio --approvers ,",
            "--approvers takes names separated by commas, such as ann,ben.",
        ),
        ("--gateway stdio --session s", f"A gateway has a session for each chat; {LEAVE_OUT}session."),
        ("--approvers ann", "--approvers needs --gateway or --listen."),
        ("--waiting 3", "--waiting needs --gateway or --listen."),
        ("--gateway stdio --model scripted:none.txt", f"{THERE_IS_NO_SCRIPT_FILE} none.txt."),
    ],
)
def test_a_mistake_at_the_start_is_a_sentence(here: Path, given: str, sentence: str) -> None:
    ended = quoth(*WORDS, *given.split(), cwd=here)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.strip().splitlines()[-1].replace(f"{here}/", "") == f"quoth: {sentence}"


def test_there_is_one_gateway_at_a_time(here: Path) -> None:
    with serving(here) as gateway:
        gateway.send(said("hello"))
        gateway.hears()
        other = quoth(*STDIO, cwd=here)
        assert (other.code, other.err) == (2, "quoth: Another gateway answers the chats of this workspace.\n")


# One person at a terminal


def test_a_chat_reads_lines_where_there_is_no_terminal(here: Path) -> None:
    ended = quoth(*WORDS, "--session", "monday", cwd=here, stdin="press one\n(echo 1)\n,helb\nsign it\n")
    assert ended.out == "So be it.\nDone: one\nYou say (echo 1).\nI ask.\n"
    assert f"{THERE_IS_NO_COMMAND} ,helb. Did you mean help? To list commands: ,help" in ended.err
    assert ended.err.endswith(
        "To list waiting requests: ,pending. To decide: ,approve or ,deny. Then: ,resume.\n"
    )
    request = json.loads(quoth("pending", "--json", cwd=here).out)[0]
    assert (request["session"], request["route"]) == ("chat-monday", "chat")
    ended = quoth(*WORDS, "--session", "chat-monday", cwd=here, stdin=f",approve {request['id']}\n,resume\n")
    assert ended.out == 'Approved once: (sign :text "it")\nI ask.\nDone: it\n'
    assert done(here) == ["press one", "sign it"]


def test_a_person_at_a_terminal_is_asked(here: Path) -> None:
    with Terminal(*WORDS, cwd=here) as terminal:
        terminal.prompted()
        terminal.enter("sign the deed")
        terminal.see("Allow it?")
        terminal.enter("y")
        terminal.see("Done: the deed")
        terminal.prompted()
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert done(here) == ["sign the deed"]
