"""Doubts about an answer of a small model, one in a run: what the answer says and no
result has shown, or what the task asks and it does not say. Each rule reads a ModelAnswer alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from quoth.agent.reply import CallRecord
from quoth.agent.run.evidence import (
    READER,
    asked_by,
    files_touched,
    is_file_name,
    is_in_vain,
    names_in,
    numbers_in,
    numbers_shown,
    quotes_in,
    results_in,
    texts_shown,
    words_in,
)
from quoth.agent.run.steps import COMPARES
from quoth.tools.lisp.printer import print_string

HOW_MANY = r"(?i)\bmany\b|\bcount\b|\bnumber of\b"
WHICH_FILE = r"(?i)\b(?:which|what) (?:file|note|document)s?\b"
SAYS_NO = r"(?i)\b(?:no|not|none|nothing|neither|nobody|without|missing)\b|n['’]t\b"
SAYS_DONE = r"\b(?:is|are|was|were) already\b"  # before the task
ASKED = ("denied", "pending")  # a person decides
HEAD_COUNT = 20  # a model may count fewer in its head


class ModelAnswer(NamedTuple):
    """An answer, the task, the calls before it, the text of the memory, the files of the place, and whether
    only a plan is wanted."""

    text: str
    task: str
    calls: Sequence[CallRecord]
    known: str
    listed: Sequence[str]
    plans: bool

    @property
    def denies(self) -> bool:
        """Whether it says that something is not there."""
        return re.search(f"{SAYS_NO}|{SAYS_DONE}", self.text) is not None


def doubt_of(answer: ModelAnswer) -> str:
    """The first doubt about an answer; empty for none."""
    return next((doubt for rule in DOUBTS if (doubt := rule(answer))), "")


def _number(answer: ModelAnswer) -> str:
    """It has a number that nothing has shown."""
    shown = numbers_shown(f"{answer.task}\n{answer.known}", answer.calls)
    counts = re.search(HOW_MANY, answer.task)
    if counts and any(call.form.tool == READER and call.result.ok for call in answer.calls):
        shown.update(range(HEAD_COUNT))
    new = next((number for number in numbers_in(answer.text) if number not in shown), None)
    return "" if new is None else f"No result contains {new}. Look further, or compute it with eval."


def _undone(answer: ModelAnswer) -> str:
    """A file was to be changed, and nothing was, and it does not say so."""
    done = any(call.result.side_effects or call.result.status in ASKED for call in answer.calls)
    if answer.plans or not asked_by(answer.task).changed or done or answer.denies:
        return ""
    return "Nothing was changed. Change it, or say that it is not done, and why."


def _unfound(answer: ModelAnswer) -> str:
    """The task is about a name, or a word that was searched in vain, and the answer does not say that it is
    missing."""
    asked = asked_by(answer.task)
    if asked.changes or answer.denies:
        return ""
    shown = "\n".join(results_in(answer.calls)).lower()
    missing = [name for name in names_in(answer.task) if name.lower() not in shown]
    for call in answer.calls if len(asked.files) < 2 else ():  # else a word for what the other file has
        tried = str(call.form.args.get("pattern", "")).lower()
        said = any(word in shown for word in tried.split())
        if tried and is_in_vain(call) and not is_file_name(tried) and not said:
            missing += re.findall(rf"(?i)\b{re.escape(tried)}\b", answer.task)
    return f"No result contains {print_string(missing[0])}. If it is not there, say so." if missing else ""


def _file(answer: ModelAnswer) -> str:
    """It does not name the file that the task asks for."""
    touched = [file.rpartition("/")[2] for file in files_touched(answer.calls) if is_file_name(file)]
    if not re.search(WHICH_FILE, answer.task) or not touched or answer.denies:
        return ""
    if any(file in answer.text for file in touched):
        return ""
    return "The task asks for a file. Name it."


def _silent(answer: ModelAnswer) -> str:
    """Nothing in it is from one of several files alone, but the first. What two files have in common, or not,
    may be in none."""
    asked = asked_by(answer.task)
    if asked.changes or answer.denies or re.search(COMPARES, answer.task):
        return ""
    said = _words(answer.text) - _words(answer.task)
    for file in asked.files[1:]:
        own = [call for call in answer.calls if call.form.args.get("path") == file]
        others = [call for call in answer.calls if call not in own]
        if own and not said & (_words(*results_in(own)) - _words(*results_in(others))):
            return f"The answer says nothing from {file}. Answer the whole task."
    return ""


def _words(*texts: str) -> set[str]:
    return {word.lower() for text in texts for word in re.findall(r"\w+", text)}


def _made_up(answer: ModelAnswer) -> str:
    """None of its new words was shown, or a quotation was not."""
    told, before = texts_shown(f"{answer.task}\n{answer.known}", answer.calls), answer.task.lower()
    words = [word for word in words_in(answer.text) if word[:4] not in before]
    if not asked_by(answer.task).only_asks or answer.denies or any(numbers_in(answer.text)):
        words = []
    unknown = [] if any(word[:4] in told for word in words) else words
    made_up = unknown or [quoted for quoted in quotes_in(answer.text) if quoted not in told]
    return f"No result contains {print_string(made_up[0])}. Look further." if made_up else ""


def _unseen(answer: ModelAnswer) -> str:
    """It names a file that was not looked into."""
    touched = files_touched(answer.calls)
    unseen = [file for file in answer.listed if file in answer.text and file not in touched]
    return f"You have not looked into {unseen[0]}." if unseen else ""


DOUBTS: tuple[Callable[[ModelAnswer], str], ...] = (
    _undone,
    _number,
    _unfound,
    _file,
    _silent,
    _made_up,
    _unseen,
)
