"""Twenty turns of two people in two chats, with every tool, limit, gate and approval: what each of them sees.

``>`` is a reply, ``+`` a follow-up, ``?`` a request, ``!`` an error; behind ``==`` stands what the model says.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from words import files, quoth, started

BOT = """
(require quoth [def-cognitive-tool])

(def-cognitive-tool rate
  "Note how many stars the user gives something."
  :parameters [stars {:type int}  thing {:type str}]
  :daily-limit 2
  :tag {:prefix "RATE"  :pattern r"([1-5]) stars? for (.+)"  :groups ["stars" "thing"]
        :example "RATE: [1-5] stars for [what]"}
  :body (.say ctx f"{thing}: {(* "*" stars)}"))

(def-cognitive-tool ring
  "Ring the bell."
  :parameters [bell {:type str}]
  :cooldown 600
  :tag {:prefix "RING"  :strip False}
  :body (.say ctx f"The {bell} rings."))

(def-cognitive-tool publish
  "Put something on the wall."
  :parameters [text {:type str}]
  :effects [:net]
  :tag "PUBLISH"
  :body (.say ctx f"On the wall: {text}"))
"""
GATE = """
(import quoth [GateDecision])

(defn :async check [tool call ctx]
  (setv about (get (dict call.form.args) "topic"))
  (GateDecision (not-in "salaries" about) "Nobody sums up salaries."))
"""
RULES = "(ask (claim) (confidence (< 0.5)))\n"
MODEL = """
(setv SCRIPT {script})

(defn reply [messages]
  "What the script says to the first of its lines that stands in the last message."
  (setv said (get messages -1 "content"))
  (when (in "Sum up what was said" said)
    (return "Ann wants solar cells on a roof that looks south."))
  (next (gfor  [line answer] (.items SCRIPT)  :if (in line said)  answer)))
"""
TURNS = [  # chat, user, what is said, what the model answers
    ("7", "ann", "look for solar cells", "I will look.\nRESEARCH: solar cells"),
    ("7", "ann", "look for heat pumps", "RESEARCH: heat pumps"),
    ("7", "ann", "look for windmills", "RESEARCH: windmills"),
    ("7", "ann", "look for batteries", "Let me see.\nRESEARCH: batteries"),
    ("8", "ben", "me too: solar cells", "RESEARCH: solar cells"),
    ("8", "ann", "batteries, here", "RESEARCH: batteries"),
    ("7", "ann", "read https://example.org/roof", "SOURCE: Measurements of a roof"),
    ("8", "ben", "they last 30 years", "CLAIM: Solar cells last 30 years.\nCONFIDENCE: 0.9"),
    ("7", "ann", "they last 90 years", "CLAIM: Solar cells last 90 years.\nCONFIDENCE: 0.2"),
    ("7", "ann", "approve it", "I cannot."),
    ("7", "ann", "keep it short", "LEARNING: communication Ann wants short answers."),
    ("8", "ben", "pigs fly", "LEARNING: hearsay Pigs fly."),
    ("8", "ben", "sum up the cells", "SUMMARIZE: solar cells"),
    ("8", "ben", "sum up the pay", "Hm.\nSUMMARIZE: salaries of all"),
    ("8", "ben", "two ratings", "RATE: 4 stars for the roof\nRATE: many stars\nRATE: 5 stars for the cat"),
    ("8", "ben", "one more rating", "RATE: 1 star for the dog"),
    ("7", "ann", "ring it", "RING: bell"),
    ("7", "ann", "ring once more", "RING: bell"),
    ("8", "ben", "put it on the wall", "PUBLISH: Solar cells last."),
    ("7", "ann", "say RESEARCH:\\nRESEARCH: pigs\\nCONFIDENCE: 1", "You want:\n> RESEARCH: pigs\nFOO: bar"),
]


class Gateway:
    """The command, and the lines it has written, by the message they belong to."""

    def __init__(self, running: Any) -> None:
        self.running = running
        self.heard: dict[Any, list[dict[str, Any]]] = {}

    def tell(self, **line: Any) -> None:
        self.running.stdin.write(json.dumps(line) + "\n")
        self.running.stdin.flush()

    def hear(self, id: int, *kinds: str) -> dict[str, Any]:
        """Wait for a line of one of these kinds that belongs to a message."""
        while True:
            for line in self.heard.get(id, ()):
                if line["kind"] in kinds:
                    return line
            line = json.loads(self.running.stdout.readline())
            self.heard.setdefault(line["id"], []).append(line)


MARKS = {"reply": ">", "followup": "+", "asked": "?", "error": "!"}


def shown(line: dict[str, Any]) -> str:
    """A line as the story shows it: without what is another at each run."""
    text = re.sub(r"\b[2-9a-z]{5}\b(?= waits)|(?<=request )[2-9a-z]{5}\b", "ID", line["text"])
    return f"{MARKS[line['kind']]} {text}"


def test_twenty_turns_in_two_chats(tmp_path: Path) -> None:
    script = "{" + "  ".join(json.dumps(part) for _, _, *pair in TURNS for part in pair) + "}"
    shop = files(
        tmp_path / "shop",
        {
            "bot.hy": BOT,
            "gate.hy": GATE,
            "rules.hy": RULES,
            "model.hy": MODEL.replace("{script}", script),
            "notes/sun.txt": "Solar cells on a roof that looks south earn most.",
            "notes/heat.txt": "Heat pumps take heat from the ground.",
        },
    )
    words = ["--tools", "bot.hy", "--gate", "gate.hy", "--policy", "rules.hy", "--search", "notes"]
    words += ["--model", "scripted:model.hy", "--approvers", "ben"]
    with started("chat", "--gateway", "stdio", *words, cwd=shop) as running:
        gateway = Gateway(running)
        for id, (chat, user, text, _) in enumerate(TURNS):
            gateway.tell(id=id, user=user, chat=chat, text=text)
            gateway.hear(id, "reply", "error")
        running.stdin.close()
        ended = running.ended()
    for id, lines in gateway.heard.items():
        print(TURNS[id])
        for line in lines:
            print("  ", shown(line))
    print(ended)
    assert 0
