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
  :effects [:pure]
  :daily-limit 2
  :tag {:prefix "RATE"  :pattern r"([1-5]) stars? for (.+)"  :groups ["stars" "thing"]
        :example "RATE: [1-5] stars for [what]"}
  :body (.say ctx f"{thing}: {(* "*" stars)}"))

(def-cognitive-tool ring
  "Ring the bell."
  :parameters [bell {:type str}]
  :effects [:pure]
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
RULES = '(ask (claim) (confidence (< 0.5)))\n'
MODEL = """
(setv SCRIPT {script})

(defn reply [messages]
  "What the script says to the first of its lines that stands in the last message."
  (setv said (get messages -1 "content"))
  (when (in "Sum up what was said" said)
    (return "Ann wants solar cells on a roof that looks south."))
  (next (gfor  [line answer] (.items SCRIPT)  :if (in line said)  answer)))
"""
STORY = """
7 ann: look for solar cells == I will look.|RESEARCH: solar cells
> I will look.
+ Found for: solar cells
"""


def test_twenty_turns_in_two_chats(tmp_path: Path) -> None:
    pass
