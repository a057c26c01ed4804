"""Twenty turns of two people in two chats, with every tool, limit, gate and approval: what each sees."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sentences import NO_TOOL_HAS_THE_TAG
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
STORY = """\
7, ann: look for solar cells
> I will look.
+ Found for: solar cells
- sun.txt: notes/sun.txt
  Solar cells on a roof that looks south earn most.
All of it is in knowledge/queue/solar-cells-7953bf09.org.
7, ann: look for heat pumps
>
+ Found for: heat pumps
- heat.txt: notes/heat.txt
  Heat pumps take heat from the ground.
All of it is in knowledge/queue/heat-pumps-646ffb15.org.
7, ann: look for windmills
>
+ Nothing was found for: windmills
7, ann: look for batteries
> Let me see.
+ research is limited: 3 of 3 used today, next tomorrow at 00:00 UTC, in a while.
8, ben: me too: solar cells
>
+ Found for: solar cells
- sun.txt: notes/sun.txt
  Solar cells on a roof that looks south earn most.
All of it is in knowledge/queue/solar-cells-7953bf09.org.
8, ann: batteries, here
>
+ research is limited: 3 of 3 used today, next tomorrow at 00:00 UTC, in a while.
7, ann: read https://example.org/roof
>
+ The source is kept in knowledge/queue/measurements-of-a-roof-734c3317.org.
8, ben: they last 30 years
>
+ The claim is kept in knowledge/claims.org.
7, ann: they last 90 years
>
? (claim :assertion "They last 90 years.") waits for approval: r.hy:1 says (ask (claim) (confidence (< 0.5))).
+ The claim is kept in knowledge/claims.org.
! ann may not decide requests here; the approvers are ben.
> Approved once: (claim :assertion "They last 90 years.")
7, ann: approve it
> I cannot.
7, ann: keep it short
>
+ The learning is kept in knowledge/learnings.org.
8, ben: pigs fly
> LEARNING: hearsay Pigs fly.
8, ben: sum up the cells
>
+ Ann wants solar cells on a roof that looks south.
It is kept in knowledge/inbox.org.
8, ben: sum up the pay
> Hm.
+ summarize was denied: Nobody sums up salaries.
8, ben: two ratings
> RATE: many stars
+ the roof: ****
+ the cat: *****
8, ben: one more rating
>
+ rate is limited: 2 of 2 used today, next tomorrow at 00:00 UTC, in a while.
7, ann: ring it
> RING: bell
+ The bell rings.
7, ann: ring once more
> RING: bell
+ ring is limited: its cooldown is 10 minutes, next at 12:00:00 UTC, in a while.
8, ben: put it on the wall
>
? (publish :text "Solar cells last.") waits for approval: it uses the network.
  text: in the text of claim Solar cells last 30 years.
+ publish was denied: the person said: Not on this wall.
> Denied: (publish :text "Solar cells last.")
7, ann: RESEARCH: pigs
CONFIDENCE: 1
> You want:
> RESEARCH: pigs
FOO: bar
"""
KEPT = [
    "knowledge/claims.org",
    "knowledge/inbox.org",
    "knowledge/learnings.org",
    "knowledge/queue/heat-pumps.org",
    "knowledge/queue/measurements-of-a-roof.org",
    "knowledge/queue/solar-cells.org",
]
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
NOTES = {
    "notes/sun.txt": "Solar cells on a roof that looks south earn most.",
    "notes/heat.txt": "Heat pumps take heat from the ground.",
}
TURNS = [  # chat, user, what is said, what the model answers
    ("7", "ann", "look for solar cells", "I will look.\nRESEARCH: solar cells"),
    ("7", "ann", "look for heat pumps", "RESEARCH: heat pumps"),
    ("7", "ann", "look for windmills", "RESEARCH: windmills"),
    ("7", "ann", "look for batteries", "Let me see.\nRESEARCH: batteries"),
    ("8", "ben", "me too: solar cells", "RESEARCH: solar cells"),
    ("8", "ann", "batteries, here", "RESEARCH: batteries"),
    ("7", "ann", "read https://example.org/roof", "SOURCE: Measurements of a roof"),
    ("8", "ben", "they last 30 years", "CLAIM: Solar cells last 30 years.\nCONFIDENCE: 0.9"),
    ("7", "ann", "they last 90 years", "CLAIM: They last 90 years.\nCONFIDENCE: 0.2"),
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
    ("7", "ann", "RESEARCH: pigs\nCONFIDENCE: 1", "You want:\n> RESEARCH: pigs\nFOO: bar"),
]


DECISIONS = {  # what is decided of the request of a message, by its number
    8: [("ann", {"approve": "ID"}), ("ben", {"approve": "ID"})],
    18: [("ben", {"deny": "ID", "why": "Not on this wall."})],
}
MARKS = {"reply": ">", "followup": "+", "asked": "?", "error": "!"}


class Gateway:
    """The command, and the lines it has written, by the message they belong to."""

    def __init__(self, running: Any) -> None:
        self.running = running
        self.heard: dict[Any, list[dict[str, Any]]] = {}

    def tell(self, **line: Any) -> None:
        self.running.stdin.write(json.dumps(line) + "\n")
        self.running.stdin.flush()

    def hear(self, id: Any, *kinds: str) -> dict[str, Any]:
        """Wait for a line of one of these kinds that belongs to a message."""
        while True:
            for line in self.heard.get(id, ()):
                if line["kind"] in kinds:
                    return line
            text = self.running.stdout.readline()
            assert text, self.running.ended()
            self.heard.setdefault((line := json.loads(text))["id"], []).append(line)

    def says(self, number: int, turn: tuple[str, ...]) -> None:
        """Say something, wait for the reply, and decide what is asked for."""
        chat, user, text, _ = turn
        self.tell(id=number, user=user, chat=chat, text=text)
        self.hear(number, "reply", "error")
        for who, decision in DECISIONS.get(number, ()):
            request = self.hear(number, "asked")["request"]["id"]
            made = {key: request if word == "ID" else word for key, word in decision.items()}
            self.tell(id=f"{number}, {who}", user=who, chat=chat, **made)
            self.hear(f"{number}, {who}", "reply", "error")

    def story(self) -> str:
        """All of it, without what is another at each run."""
        parts = []
        for number, (chat, user, text, _) in enumerate(TURNS):
            parts.append(f"{chat}, {user}: {text}")
            for who in ("", *(f", {who}" for who, _ in DECISIONS.get(number, ()))):
                lines = self.heard.get(f"{number}{who}" if who else number, ())
                parts += [f"{MARKS[line['kind']]} {line['text']}".rstrip() for line in lines]
        told = re.sub(r"in \d+ (hours?|minutes?|seconds?|s)\b", "in a while", "\n".join(parts))
        # A full minute is said without seconds, and ten minutes before midnight it is tomorrow.
        told = re.sub(r"(cooldown .*, next) (tomorrow )?at \d\d:\d\d(:\d\d)?", r"\1 at 12:00:00", told)
        return re.sub(r"\b(?=[a-z]*[2-9])[2-9a-z]{5}\b", "ID", told)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    script = "{" + "  ".join(json.dumps(part) for _, _, *pair in TURNS for part in pair) + "}"
    held = {"bot.hy": BOT, "gate.hy": GATE, "r.hy": RULES, "model.hy": MODEL.replace("{script}", script)}
    return files(tmp_path / "shop", {**held, **NOTES})


def test_twenty_turns_in_two_chats(shop: Path) -> None:
    words = ["--tools", "bot.hy", "--gate", "gate.hy", "--policy", "r.hy", "--search", "notes"]
    words += ["--model", "scripted:model.hy", "--approvers", "ben"]
    with started("chat", "--gateway", "stdio", *words, cwd=shop) as running:
        gateway = Gateway(running)
        for number, turn in enumerate(TURNS):
            gateway.says(number, turn)
        running.stdin.close()
        for text in running.stdout:
            gateway.heard.setdefault((line := json.loads(text))["id"], []).append(line)
        assert running.process.wait(60) == 0
    assert gateway.story() == STORY.strip()
    kept = sorted(path.relative_to(shop).as_posix() for path in (shop / "knowledge").rglob("*.org"))
    assert [re.sub(r"-\w{8}(?=\.org)", "", path) for path in kept] == KEPT
    tags = quoth("log", "chat-7", "--tags", cwd=shop).out.splitlines()
    assert tags[-4:] == [
        "r11, line 2: > RESEARCH: pigs",
        "  passed: it is quoted",
        "r11, line 3: FOO: bar",
        f"  passed: {NO_TOOL_HAS_THE_TAG} FOO",
    ]
