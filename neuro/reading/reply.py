"""Model text -> its calls, in order, and its faults; also as the text arrives in pieces. It runs nothing.

A call is a form for which all of this is true:

- It begins a line (after blanks, a list mark, or a label such as ``Call:`` or ``Next step:``; not
  ``For example:``) or follows another call, or the mark of a family of models (families/).
- It is not quoted: not in ``inline code``, not in a line that begins with ``>``, not in a fence or Org block
  that is marked with another language or as an example, and not announced as an example or as the words of
  another person. An announcement is a line directly before the form, its paragraph or its fence that ends in
  a colon after "for example", "you could write", "you wrote" or similar words.
- It has the shape of a call. In Lisp: a plist that names its tool, or a list whose head is a known tool, or a
  list whose arguments are all ``:key value`` (the door answers for an unknown tool). In JSON: an object that
  can only be a call (see json_calls.py). In Python's syntax, ``name(key=value)`` or ``[name(…), …]``:
  known tools only, with nothing after it on its line. A response tag, ``TAG: words``: outside of fences and
  lists, with words that match the tag's pattern, and not in a paragraph that is announced as above.

Before that, text that is not the model's reply is cut: thoughts (also endless ones, and one that began with
the reply and only has an end mark), results that the model invents with all text after them, and marks of
turns (result.py). Words whose line ends with the mark of an endless thought may only mention it: they are
text, and no call after them counts. The markup of a family is a call, or a fault: it is never an answer.
Marks are text inside a form's strings, code spans, quotations, ``<pre>`` and similar elements, the words of a
sentence, and fences; a fence that contains only markup counts.

Any other form is text. A reply that consists only of Lisp without a call, or that begins with a known tool's
name and arguments in none of these shapes, is reported as an error.

A form inside another form is never a separate call, and neither is a fence or a form in a string. So after an
unreadable form, reading continues only at forms that begin no further to the right (the convention of Lisp
editors), and stops if the fault is in a string of a call, because the end of the string is then unknown.

A misspelt call is repaired if only one reading is possible, and each call lists its repairs. A missing end is
supplied only at the end of the reply or of its fence, and never in a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

import hy.models as m

from quoth.neuro.reading.forms import CALL_LIMITS, FENCE, LINE, is_call
from quoth.neuro.reading.prose import without_marks
from quoth.neuro.reading.result import Fault, FoundCall, Reading
from quoth.neuro.reading.scanner import CONTEXT, DATA_FENCES, LISP_FENCES, Scan
from quoth.neuro.reading.tag_lines import Tags, passed_lines
from quoth.tools import lazy_regex
from quoth.tools.errors import nearest
from quoth.tools.lisp.forms import head_name, kebab
from quoth.tools.lisp.reader import LineIndex, ReadError, read_prefix

MAX_REPLY = 8_000_000
IN_DOUBT = "An endless thought may begin here, so no call after it is run"


def read_reply(
    text: str, known: Collection[str] = (), tags: Tags | None = None, *, cut: bool = False
) -> Reading:
    """Every call in ``text``, in order. Never raises: ``errors`` of the Reading has the unreadable parts.

    ``known`` are the names of the tools; ``tags`` maps each response tag to its tool, or to the name of a
    tool that takes the words as its argument. ``cut``: the reply was cut off at its maximum length, so a
    missing end is not guessed."""
    if not text:
        return Reading()
    if len(text) > MAX_REPLY:
        message = f"The reply has {len(text)} characters, more than the {MAX_REPLY} that are read"
        return Reading(errors=[Fault(message, 1, 1, "answer in fewer words")])
    text = unmarked(text)
    scan = Scan(text, known, tags or {}, cut=cut)
    scan.run()
    if scan.doubt >= 0 and scan.calls and scan.calls[-1].start > scan.doubt:
        scan.calls[:] = [call for call in scan.calls if call.start < scan.doubt]
        scan.errors.append(Fault(IN_DOUBT, *scan.lines.at(scan.doubt), "end the thought, or write `<think>`"))
    reading = Reading(scan.calls, _without(text, scan), scan.errors, sure=scan.sure)
    reading.content = _kept(text, scan.dropped).strip() if scan.dropped else text
    thoughts = [without_marks(text[start:end]) for start, end in scan.thoughts]
    reading.reasoning = "\n\n".join(filter(None, thoughts))
    reading.display = _without(text, scan, scan.whole) if scan.whole else reading.text
    if tags:
        reading.passed = passed_lines(
            text,
            tags,
            calls=scan.cuts,
            known=scan.passed,
            fences=scan.fences,
            read=scan.position,
            stopped=scan.stopped,
            line_of=lambda offset: scan.lines.at(offset)[0],
        )
    if not reading.calls and not reading.errors:
        fault = _only_thought(reading, scan) or _no_answer(_kept(text, scan.dropped, _blank), scan)
        reading.errors += [fault] if fault else []
    return reading


def unmarked(text: str) -> str:
    """The text with its byte order mark replaced by a blank, so that offsets stay the same."""
    return " " + text[1:] if text.startswith("\ufeff") else text


def _kept(text: str, dropped: list[tuple[int, int]], cover: Callable[[str], str] | None = None) -> str:
    """The text without the ``dropped`` spans; with ``cover``, these are replaced."""
    pieces, position = [], 0
    for start, end in dropped:
        pieces += [text[position:start], cover(text[start:end]) if cover else ""]
        position = end
    return "".join([*pieces, text[position:]])


def _blank(text: str) -> str:
    """Blanks of the same length as a text, so that later offsets stay the same."""
    return _NO_LINE_FEED.sub(" ", text)


def _only_thought(reading: Reading, scan: Scan) -> Fault | None:
    """The fault of a reply that is only a thought."""
    if not scan.thoughts or reading.text:
        return None
    place = scan.lines.at(scan.dropped[-1][0])
    if scan.unclosed_thought:
        return Fault("The reply ends inside a thought", *place, "end the thought, then answer or call")
    return Fault("The reply is only a thought", *place, "answer or call after the thought")


def _no_answer(text: str, scan: Scan) -> Fault | None:
    """The fault of a reply without a call that is not an answer: outside of fences it is, or seems, Lisp and
    not prose."""
    bare = FENCE.sub("", text).strip()
    if near := _near_call(text, bare, scan.known):
        line, column = scan.lines.at(text.index(near))
        return Fault(f"This names the tool {near}, but does not call it", line, column, scan.hint(near))
    if scan.code >= 0:
        return Fault("This tool_code contains no call of a tool", *scan.lines.at(scan.code), scan.hint(""))
    quoted = bare.startswith(("'(", "`(", "[("))
    if not quoted and not (scan.lisp and bare.startswith("(")):
        return None
    try:
        model, end = read_prefix(bare, 0, CALL_LIMITS)
    except ReadError as error:
        if quoted or not error.incomplete:
            return None
        line, column = scan.lines.at(text.index("("))
        return Fault(
            f"This form cannot be read: {error.message}",
            line,
            column,
            f"{error.hint}; to answer, write plain words",
        )
    if quoted and not any(is_call(item, scan.known) for item in model):
        return None
    if re.search(r"[A-Za-z]", re.sub(r"\([^()]*\)", "", bare[end:])):
        return None
    line, column = scan.lines.at(text.index(bare[0]))
    name = (head_name(model[0]) or "") if isinstance(model, m.Expression) and model else ""
    if not quoted and name and (close := nearest(kebab(name), scan.known)):
        return Fault(f"Unknown tool {name}", line, column, f"did you mean {close}? {scan.hint(close)}")
    program = scan.hint("eval") if "eval" in scan.tagged else "write (eval :form (…))"
    hint = f"to run a program, {program}; to answer, write plain words"
    return Fault("This is Lisp, but no call of a tool", line, column, hint)


# A reply with such a beginning is almost a call. Words after the name make it prose: echo "a" says a.
_NEAR = lazy_regex.compile(
    r"""(?:Thought:[^\n]*+\n\s*+)?+(?:\**+Action:\**+\s*+)?+(?P<bracket>[\[{<])?\s*+(?:functions\.)?(?P<name>[A-Za-z_][\w-]*+)
        (?: \s++:[A-Za-z] | (?::\d++)?+\s*+\{ | >\s*+< | [ \t\r*]*+\n[ \t]*+\**+Action\ Input:
          | \s*+(?(bracket)(?:["“]|[\]})]\s*+\Z)|(?:"(?:[^"\\]++|\\.)*+"\s*+)++\Z) )""",
    re.VERBOSE | re.DOTALL,
)

# Small models answer with a call followed by its invented result, in the format of our results.
_RESULT = lazy_regex.compile(r"[^\n]* -> ok(?:, \d+ items)?:\s*\S")


def _near_call(text: str, bare: str, known: Collection[str]) -> str:
    """The name of the known tool that the whole reply seems to call, as written there; or ""."""
    found = _NEAR.match(bare)
    if found is None or kebab(found["name"]) not in known or _RESULT.match(bare, found.end()):
        return ""
    foreign = any(mark["info"].lower() not in LISP_FENCES | DATA_FENCES for mark in FENCE.finditer(text))
    return "" if foreign else found["name"]


# A fence that contained only calls; each removed call has left a NUL.
# Because of the look-behinds a run of marks is tried only from its first: a reply of backticks stays linear.
_EMPTY_FENCE = lazy_regex.compile(
    r"(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[\w+-]*+\s*+\0[\s\0]*+(?:(?:`{3,}+|~{3,}+)(?!\w)|\Z)"
)
_LINE_END = lazy_regex.compile(r"[ \t\r]*+(?:\n|\Z)")
_NO_LINE_FEED = lazy_regex.compile(r"[^\n]")
_BLANK_LINES = lazy_regex.compile(r"(?:[ \t\r]*+\n)*+")


def _without(text: str, scan: Scan, lines: Mapping[int, bool] | None = None) -> str:
    """The text without its calls. ``lines`` are cuts that are whole lines, by their starts: such a line is
    removed with all but one of the blank lines around it, or it stays."""
    kept: list[str] = []
    position, blank = 0, False  # blank: a blank line must precede the next text
    ends, ended = set(scan.fences[1::2]), False  # ended: directly after a fence of words, which stays whole
    line = seen = 0  # the start of the current line

    def keep(piece: str) -> None:
        nonlocal blank
        if piece:
            kept.append("\n" + piece if blank and kept else piece)
            blank = False

    for start, end in scan.cuts:
        spared = lines.get(start) if lines else None
        if spared is False or start < position:
            continue
        begin = text.rfind("\n", position, start) + 1 or position
        after = _LINE_END.match(text, end)
        if spared and after and not text[begin:start].strip():
            piece = text[position:begin]
            last = piece.find("\n", len(piece.rstrip())) + 1 if piece.strip() else 0
            keep(piece[:last].replace("\0", ""))
            rest = _BLANK_LINES.match(text, after.end())
            position = after.end() if rest is None else rest.end()
            blank = blank or len(piece) > last or position > after.end()
        else:
            piece = text[position:start]
            if before := piece.rstrip():
                place = position + len(before)
                line, seen = text.rfind("\n", seen, place) + 1 or line, place
                ended = line in ends
            mark = "" if start in scan.whole or ended else "\0"  # a fence contains no tags
            keep(piece.replace("\0", "") + mark)
            position = end
    keep(text[position:].replace("\0", ""))
    left = "".join(kept)
    return (_EMPTY_FENCE.sub("", left).replace("\0", "") if "\0" in left else left).strip()


# A reply that arrives in pieces

# Walks over one unfinished part; before further ones its brackets must close, or its length must double.
MAX_TRIES = 8
_OPENERS, _CLOSERS = re.compile(r"[(\[{]").findall, re.compile(r"[)\]}]").findall


class ReplyStream:
    """Takes the pieces of a reply and returns the calls that each piece completes.

    A call that ``feed`` reports is in the final Reading, in the same order, unless an unmarked thought that
    began with the reply ends after it. A call that is certain only at the end (its end is missing, or it
    follows a thought, a family's markup, or an unclosed form) is only in the final Reading, after the first
    ``reported`` calls. A call with many unpaired brackets in its texts may be reported late."""

    def __init__(self, known: Collection[str] = (), tags: Tags | None = None) -> None:
        self.reported = 0
        self._known = known
        self._tags = tags or {}
        self._all: list[str] = []
        self._scan = Scan("", known, self._tags, final=False)
        self._window = ""  # the text not scanned yet, and CONTEXT characters before it
        self._place = (1, 1)  # line and column of the window
        self._pieces: list[str] = []  # the text after the window
        self._length = 0  # the length of the whole text so far
        self._walked = 0  # characters that the last walk read after the place where it stopped
        self._tries = 0  # the number of walks that stopped there
        self._open = 0  # opened minus closed brackets of the unfinished form, also in its texts

    def feed(self, piece: str) -> list[FoundCall]:
        """The calls that this piece completes."""
        self._all.append(piece)
        self._length += len(piece)
        if not self._scan.stopped:
            self._pieces.append(piece)
            if self._is_due(piece):
                self._walk()
        found = self._scan.calls[self.reported :]
        self.reported += len(found)
        return found

    def _is_due(self, piece: str) -> bool:
        """Whether to walk: a form may begin in the piece, or the unfinished form may end in it. This keeps
        the time linear; an error here reports a call later, never wrongly."""
        scan, line = self._scan, "\n" in piece
        if scan.waits_for == LINE:
            return line
        closers, tries = _CLOSERS(piece), MAX_TRIES
        grown = self._length - scan.base - scan.position >= 2 * self._walked
        if scan.waits_for is None:
            self._tries *= not line  # a form begins a line or follows another form
            due = bool(_OPENERS(piece)) or (line and bool(self._tags))
        else:
            self._open += len(_OPENERS(piece)) - len(closers)
            due, tries = bool(closers), tries + tries * (self._open <= 0)
            if grown and scan.text[scan.waits_for] != "(":  # more text may show that it is not a call
                return True
        if due and not grown:
            due = self._tries < tries
            self._tries += due
        return due

    def end(self, *, cut: bool = False) -> Reading:
        """The reading of the whole reply, equal to that of ``read_reply``."""
        return read_reply("".join(self._all), self._known, self._tags, cut=cut)

    def _walk(self) -> None:
        scan = self._scan
        self._window += "".join(self._pieces)
        self._pieces.clear()
        scan.text = self._window
        scan.lines = LineIndex(self._window, *self._place)
        place = scan.position
        scan.run()
        self._tries *= scan.position == place
        self._walked = len(self._window) - scan.position
        if scan.waits_for is not None and scan.waits_for >= 0:
            form = self._window[scan.waits_for :]
            self._open = len(_OPENERS(form)) - len(_CLOSERS(form))
        line = self._window.rfind("\n", 0, scan.position) + 1
        scan.quotations.read(self._window, line, scan.base)
        keep = max(0, min(line, scan.position - CONTEXT))
        self._place = scan.lines.at(keep)
        self._window = self._window[keep:]
        scan.base += keep
        scan.position -= keep
