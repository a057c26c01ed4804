"""The scan of a reply, line by line, for calls, by the rule in reply.py. It runs nothing, and can pause when
a stream has no more text yet."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from quoth.neuro.reading import prose
from quoth.neuro.reading.families import ENDS, MARKS, RESULTS, family_at
from quoth.neuro.reading.forms import FENCE, FENCE_LINE, FormReader, Wait
from quoth.neuro.reading.literals import NotRead
from quoth.neuro.reading.markup import Cursor, Family
from quoth.neuro.reading.result import Fault
from quoth.neuro.reading.tag_lines import (
    EXAMPLE,
    NO_MATCH,
    QUOTED,
    TEMPLATE,
    TOO_SLOW,
    Tags,
    confidence_of,
    is_template,
    tag_fault,
    tag_form,
    tag_line,
)
from quoth.tools import lazy_regex
from quoth.tools.lisp.forms import CallForm, kebab
from quoth.tools.registry.parameters import CONFIDENCE

CONTEXT = 400  # characters before a form that may mark it as an example
CALL_FENCES = {"", "tool", "tool_call", "tool_calls", "text"}  # the languages that models use for calls
LISP_FENCES = CALL_FENCES.union(
    ("lisp", "hy", "clojure", "clj", "scheme", "elisp", "emacs-lisp", "common-lisp", "cl")
)
DATA_FENCES = CALL_FENCES.union(("json", "jsonc", "json5", "tool_code"))
MARKUP_FENCES = {"xml", "html"}  # contain no forms, but the markup of a family
DOCUMENT_FENCES = {"markdown", "md", "org", "rst"}  # a fence inside them belongs to the document

LISTED = r"\[(?:/?THINK|TOOL_CALLS|ARGS|CALL_ID|TOOL_RESULTS|INST)\]"  # marks that look like lists
_START = rf"""
    (?:(?:[-*+•]|\d{{1,9}}[.)])[ \t]++)?            # a list mark
    (?:\*{{0,3}}(?i:(?:tool|function|next)?[ ]?                # a label
       (?:call|action|step|form|tool)[ ]?\d{{0,3}}):\*{{0,3}}[ \t]*+)?
    (?:```(?P<language>[\w+-]*+)[ \t]*+)?         # a fence of one line
    (?!{LISTED})(?=(?P<opener>[({{\[]|(?P<name>[A-Za-z_][\w.-]{{0,63}}+\()))"""
_REST = lazy_regex.compile(rf"^[ \t]*+{_START}(?=[({{])", re.MULTILINE | re.VERBOSE)
# The allowed text between two consecutive forms, and text that may become that with more text.
_NEXT = {
    opener: [lazy_regex.compile(rf"{blank}*+{end}") for end in (rf"(?=\{opener})", r"\Z")]
    for opener, blank in (("(", r"\s"), ("{", r"[\s,;]"))
}
_FENCE_END = lazy_regex.compile(rf"\s*+(?:`{{3}}|~{{3}}|#\+(?i:end)_|{MARKS}|\Z)")
_PARAGRAPH = lazy_regex.compile(r"\n[ \t\r]*+\n")
# Sentences up to a colon that announce an example or a quotation. The list is short, because an announced
# form is never called: "as you asked, I search:" announces a call.
_EXAMPLE = lazy_regex.compile(
    r"""\A\W*+(?:
      (?:[^\n]*\W)?(?:for[ ](?:example|instance)|e\.g)\b
    | (?:(?:here|below|this|that|these|the[ ]following)(?:['’]s|[ ](?:is|are|was))[ ]|(?:as|see|or|and)[ ])?
      (?:(?:an?|one|another)[ ](?:[\w-]+[ ]){0,2}?example\b
        |(?:(?:the|some|more|(?:a[ ])?few|usage|code|call|tool|simple|short)[ ]){0,2}
         examples?(?:[ ]\w++){0,2}\W*\Z)
    | (?:usage|syntax)(?:[ ]\w++){0,2}\W*\Z
    | [^\n]*\b(?:looks|calls[ ]look)[ ]like[ ]this\W*\Z
    | (?:(?:so|then|and|or|but|also|now|instead|alternatively|to|in|if|with|as|when)\b[^\n]*\W|[^\n]*,[ ])?
      you[ ](?:can|could|may|might|would|should)[ ](?:also[ ])?(?:write|say|type|send|use|call|try|run)\b
    | (?:[^\n]*\bwhat[ ]|(?:as|so|earlier|before|first|then|and|but|in[ ]your[ ]\w+,?)[ ])?
      (?:you|the[ ]user)[ ](?:just[ ])?(?:wrote|said|sent|typed)(?:[ ]\w++){0,3}\W*\Z
    | (?:(?:in|from|here[ ](?:is|are)|this[ ](?:is|was)|these[ ](?:are|were))[ ])?
      your[ ](?:message|words)(?:[ ]\w++){0,3}\W*\Z
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# A sentence about the speaker's own next action never announces an example.
_INTENT = lazy_regex.compile(
    r"""\W*+(?:(?!for[ ]example|for[ ]instance)\w++,?[ ]){0,3}?
      (?:let[ ](?:me|us)|let['’]s|(?:I|we)(?:['’](?:ll|m|re)
      |[ ](?:will|shall|am|are|now|need|want|must|have)))\b""",
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCE = lazy_regex.compile(r"(?<!\be\.g)[.!?]\s")

_SPAN = r"(?<!`)(?P<span>`++)[^\n]{0,400}?(?<!`)(?P=span)(?!`)"
_MARK = (
    r"(?=[<>\[\]◁]|a(?:nalysis|ssistant)|call:|commentary|functools|to=functions)"
    rf"(?P<mark>(?-x:{prose.BEGIN}|{prose.END}|{RESULTS}|{ENDS}|{MARKS}))"
)
_END = lazy_regex.compile(ENDS)
_NO_CALL = lazy_regex.compile(rf"</|{ENDS}")
_NO_REPLY = lazy_regex.compile(rf"{prose.BEGIN}|{prose.END}|{RESULTS}")
_TAG = lazy_regex.compile(r"<[^<>\n]{0,80}>")
_ELEMENT = lazy_regex.compile(r"<(\w+)>")
_FORM = lazy_regex.compile(
    r"\s*+(?P<fence>`{3}[\w+-]*+\s*+)?+(?=(?P<opener>[({\[])|[A-Za-z_][\w.-]{0,63}+\()"
)


@lru_cache(maxsize=32)
def _events(tags: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The patterns of the next event, at any place and at the beginning of a line: a fence, a response tag,
    the start of a form, or an event that may occur anywhere."""
    names = "|".join(re.escape(tag) for tag in sorted({*tags, CONFIDENCE}, key=len, reverse=True))
    tag = rf"(?P<tag>{names if tags else '(?!)'}):(?=\s|\Z)(?P<query>[^\n]*+)"
    line = rf"[ \t]*+(?: {FENCE_LINE} | {tag} | {_START} )"
    anywhere = rf"| ^[ \t]*+(?P<quotation>>(?!>>\w)[^\n]*+) | {_SPAN} | {_MARK}"
    flags = re.MULTILINE | re.VERBOSE
    return lazy_regex.compile(line + anywhere, flags), lazy_regex.compile(f"^{line}{anywhere}", flags)


class Scan(FormReader):
    """One scan of a reply. For a stream it scans the text so far and pauses where more text could matter."""

    def __init__(
        self,
        text: str,
        known: Collection[str],
        tags: Tags,
        *,
        cut: bool = False,
        final: bool = True,
    ) -> None:
        super().__init__(text, known, cut=cut, final=final)
        self.tags = tags
        self.tagged = {tool.name: tool for tool in tags.values() if not isinstance(tool, str)}
        self.line, self.event = _events(tuple(tags))
        self.waits_for: int | None = None  # see Wait
        self.sure: list[tuple[float, str]] = []  # each CONFIDENCE, with its line
        self.fences: list[int] = []  # their beginnings and ends in turn
        self.whole: dict[int, bool] = {}  # cuts that are lines of tags: whether they are hidden from people
        self.passed: dict[int, str] = {}  # tags that are not calls, with the reason
        self.slow: set[str] = set()  # tags with a pattern that took too long
        self.told: set[str] = set()  # tags with a fault
        self.quotations = prose.Quotations()
        self.thoughts: list[tuple[int, int]] = []
        self.code = -1  # the beginning of a fence of tool_code
        self.unclosed_thought = False  # whether the last thought never ends
        self.endless: set[int] = set()  # the pairs of marks without an end mark from here on
        self.doubt = -1  # the place of an endless thought, or of a sentence that mentions its mark
        self.dropped: list[tuple[int, int]] = []  # cuts that are not words of the reply, except calls
        self.fresh = -1  # the end of the last cut: the text after it begins like a line
        self.floor = 0  # the end of the last cut: text before it announces nothing after it
        self.own_to = 0  # the offset up to which no announcement was found

    def run(self) -> None:
        self.waits_for = None
        while not self.stopped:
            position, chained = self.position, self.chained
            try:
                if not self._step():
                    break
            except Wait as wait:
                self.position, self.chained, self.waits_for = position, chained, wait.start
                return
        if self.final and self.stopped:
            lead, mark = (one.search(self.text, self.position) for one in (_REST, self.event))
            places = [lead.end()] if lead else []
            if mark and not (mark["span"] or mark["quotation"] or _NO_CALL.match(self.text, mark.start())):
                places.append(mark.start())
            if places:
                where = self.lines.at(min(places))
                self.errors.append(Fault("The rest was not read", *where, self.stopped))

    def _step(self) -> bool:
        """Read up to the next form or fence; false at the end of the text."""
        if self.chained:
            return self._chain()
        pattern = self.event if self._allows(DATA_FENCES | LISP_FENCES | MARKUP_FENCES) else FENCE
        found = None
        if self.position == self.fresh:
            found = self.line.match(self.text, self.position)
        found = found or pattern.search(self.text, self.position)
        if found is None:
            if not self.final:
                self.position = max(self.position, self._last_line())
            return False
        if found["marks"]:
            self._need_line(found.end())
            before = self.fence
            self._at_fence(found)
            if (before is None) != (self.fence is None):
                self.fences.append(found.start() + self.base)
        elif found["tag"]:
            self._need_line(found.end())
            self._at_tag(found)
        elif found["mark"] is not None:
            self._at_mark(*found.span("mark"))
        elif found["quotation"] or found["span"]:
            if found["quotation"]:
                self._need_line(found.end())
            self.position = found.end()
        else:
            self._at_start(found)
        return True

    def _last_line(self) -> int:
        """The start of the last line with words, because a mark in it may need the text after it; if more
        than CONTEXT blanks follow it, the start of the last line."""
        words = self.text.rstrip()
        text = words if len(self.text) - len(words) <= CONTEXT else self.text
        return text.rfind("\n") + 1

    def _allows(self, languages: Collection[str]) -> bool:
        return self.fence is None or self.fence[1] in languages

    # ---- marks: thoughts, invented results, and the calls of families

    def _at_mark(self, start: int, end: int) -> None:
        text = self.text
        if not self.final:  # later text may change its meaning: so the stream stops here, and base is 0 below
            self.stopped = "it is read when the reply has ended"
            return
        if start == end and (tag := _TAG.match(text, start)):  # the tag is read as a whole later
            end = tag.end()
        ends = bool(self.calls) and prose.closed(text, start) >= 0  # a thought, after calls
        if prose.is_quoted(text, start, end) if ends else prose.is_word(text, start, end):
            self.position = max(end, start + 1)
        elif ends and self.fence is not None and prose.is_alone(text, start, end):
            self.fence = None  # a thought left it open
            self._past(start)
        elif self.fence is None and (found := _END.match(text, start)):
            self.position, example = found.end(), self.example_end
            if 0 <= example <= start and not text[example:start].strip("}] \t\r\n"):  # a part of the example
                self.example_end = self.fresh = self.position
            else:
                self._drop(start, self.position)
        elif self.fence is None and _NO_REPLY.match(text, start):
            self._past(start)
        elif (family := family_at(text, start)) is None:
            self.position = max(end, start + 1)
        elif self.fence is not None and text[self.pure : start].strip():  # it contains more than calls
            self.position = max(end, start + 1)
            self.fence = self.fence and (self.fence[0], "an example")
        else:
            self.example = self._is_quoted(start, plainly=True) or self._is_example(start)
            read = self._in_section if family[0].has_sections else self._before_form
            read(start, *family)

    def _is_quoted(self, start: int, *, plainly: bool) -> bool:
        """Whether a quotation, a comment or a quoting element is open."""
        self.quotations.read(self.text, start, self.base)
        return self.quotations.is_open(plainly=plainly)

    def _past(self, start: int) -> None:
        """Skip a thought, or a result that the model invents."""
        text = self.text
        if opened := prose.opened(text, start):
            pair, first = opened
            closed = None if pair in self.endless else prose.end_of_thought(text, pair, first)
            if closed is None:
                self.endless.add(pair)
                if prose.ends_words(text, start, first):
                    self.doubt = start if self.doubt < 0 else self.doubt
                    self.position = first
                    return
            last, self.position = closed or (len(text), len(text))
            self.thoughts.append((first, last))
            self.unclosed_thought = closed is None
            self._drop(start, self.position)
        elif (end := prose.closed(text, start)) >= 0:
            self._take_back(start, end)
        else:  # after a call, or in a turn of another speaker, all further text is invented, too
            name = None if self.calls else _ELEMENT.match(text, start)
            close = text.find(f"</{name[1]}>", start) if name else -1
            self.position = close + len(name[0]) + 1 if name and close >= 0 else len(text)
            self._drop(start, self.position)
        # It does not announce or quote the text after it.
        self.floor, self.example_end, self.own_to = self.position, -1, 0
        self.quotations = prose.Quotations(self.floor)

    def _take_back(self, start: int, end: int) -> None:
        """Remove calls found in a thought that began with the reply and ends here."""
        self.thoughts[:] = [(0, start)]
        for found in (self.calls, self.errors, self.sure, self.cuts, self.dropped):
            found.clear()
        self.whole.clear()
        self.passed.clear()
        self.told.clear()
        self.lisp, self.rightmost, self.position = False, 0, end
        self._drop(0, end)

    def _drop(self, start: int, end: int) -> None:
        """Cut out a span that is not part of the reply's words."""
        self.dropped.append((start, end))
        self.fresh = end
        self._cut_out(start, end)

    # ---- the calls of families

    def _in_section(self, start: int, family: Family, behind: int) -> None:
        """Read a section of calls. An unreadable part is reported to the model."""
        text = self.text
        cursor = Cursor(text, behind, cut=self.cut)
        fault: NotRead | None = None
        try:
            family.read_section(cursor)
            if not cursor.calls and not cursor.speaks:
                raise NotRead("there is no call in it", behind)
        except NotRead as error:
            fault = error
        self.position = max(cursor.position, start + 1)
        if self.fence is not None and not fault and not _FENCE_END.match(text, self.position):
            return
        if not fault and prose.in_sentence(text, start, self.position):
            return
        self.fresh = self.quotations.read_to = self.position
        for call in cursor.calls:
            span = call.start, call.end
            self._found(self._named(call.form), span, call.repairs, (start, self.position))
        if cursor.speaks and not self.example:
            self._drop(start, self.position)
        if self.example:
            self.example_end = self.position
        elif fault:
            self._unread(family, start, fault)

    def _before_form(self, start: int, family: Family, behind: int) -> None:
        """Read the form after a mark, in any syntax; it is meant as a call."""
        text = self.text
        form = _FORM.match(text, behind)
        if form is None:
            self._unread(family, start, NotRead("no call follows", behind))
            return
        self.position = form.end()
        found, faults, cuts = len(self.calls), len(self.errors), len(self.cuts)
        self.family = family
        try:
            self._one(form["opener"] or "")
        finally:
            self.family = None
        if len(self.calls) > found or self.example:
            after = Cursor(text, self.position)
            after.skip_excess()
            after.take("`{3}" if form["fence"] else "(?!)")
            while after.take("|".join(family.ends) or "(?!)"):
                pass
            self.position = after.position
            del self.cuts[cuts:]
            if prose.in_sentence(text, start, self.position):
                del self.calls[found:]
                return
            self.fresh = self.quotations.read_to = self.position
            if self.example:
                self.example_end = self.fresh
            else:
                self._cut_out(start, self.position)
        elif len(self.errors) == faults and not self.stopped:
            self._unread(family, start, NotRead("no call follows", behind), stops=False)

    def _unread(self, family: Family, start: int, error: NotRead, *, stops: bool = True) -> None:
        self.position = max(self.position, start + 1)
        if self.example:
            return
        hint = self.hint("") if self.tagged else f"write {family.shape}"
        what = f"This call in {family.name}'s markup cannot be read"
        self._fault(f"{what}: {error}", error.offset, hint)
        if stops:
            end = _END.search(self.text, error.offset)
            if end and prose.is_draft(self.text, start, end.start()):
                self.position = end.end()
                return
            self._stop_behind(start)

    # ---- fences, tags, and the starts of forms

    def _at_fence(self, mark: re.Match[str]) -> None:
        self.position, self.rightmost = mark.end(), 0
        ticks, language = mark["marks"], mark["info"].lower()
        if mark["org"]:
            ticks, language, ends = self._org_block(mark)
            if ends or self.fence is not None:  # inside another fence it is text
                self.fence = None if self.fence and self.fence[0] == ticks else self.fence
                return
        elif self.fence is not None and self.fence[0][0] == "#":
            return
        if self.fence is None:
            if self._announced(mark.start()):
                language = language if language in DOCUMENT_FENCES else "an example"
            self.fence, self.pure = (ticks, language), mark.end()
            self.code = mark.start() if language == "tool_code" else self.code
        elif language:
            if self.fence[1] not in DOCUMENT_FENCES:  # the fence before was left open
                self.fence = ticks, language
        elif ticks[0] == self.fence[0][0] and len(ticks) >= len(self.fence[0]):
            self.fence, self.position = None, mark.end("info")  # the mark of a turn may follow it

    def _org_block(self, mark: re.Match[str]) -> tuple[str, str, bool]:
        """The mark that begins and ends an Org block, its language, and whether this mark ends it."""
        kind = mark["info"].lower()
        words = self.text[mark.end("info") : mark.end()].lower().split()
        language = (words[0] if words else "") if kind == "src" else "an example"
        return f"#{kind}", language, mark["marks"][2:].lower() == "end_"

    def _announced(self, start: int, since: int | None = None) -> bool:
        """Whether the words before announce an example or a quotation."""
        since = self._since(start) if since is None else since
        before = self.text[max(0, since) : start].rstrip("*_ \t\r\n")
        if not before.endswith(":"):
            return False
        sentence = _SENTENCE.split(before[before.rfind("\n") + 1 :])[-1]
        return _INTENT.match(sentence) is None and _EXAMPLE.match(sentence) is not None

    def _since(self, start: int) -> int:
        """The offset from which text before a place may announce it."""
        return max(0, start - CONTEXT, self.floor)

    def _at_tag(self, found: re.Match[str]) -> None:
        start, tag, words = found.start("tag"), found["tag"], found["query"].strip()
        end = found.start("query") + len(found["query"].rstrip())
        self.position = found.end()
        if self.fence is not None:
            return
        quoted = self._is_quoted(found.start(), plainly=False)
        self.example = quoted or self._is_told(found.start())
        if self.example:
            self.example_end = self.example_end if quoted else self.position + self.base
            self.passed[start + self.base] = QUOTED if quoted else EXAMPLE
            self._pass_over(1)
        elif tag not in self.tags:
            if (confidence := confidence_of(words)) is not None:
                self.sure.append((confidence, self.text[start:end]))
                self._cut_line(start, end, True)
        elif (form := self._form(tag, words, start, end)) is not None:
            tool = self.tags[tag]
            self._found(form, (start, end), tag=tag)
            self._cut_line(start, end, isinstance(tool, str) or tool.tag is None or tool.tag.strip)

    def _form(self, tag: str, words: str, start: int, end: int) -> CallForm | None:
        """The call with that tag and words; None, with one fault for each tag, if its pattern does not match
        or the words only repeat the prompt. Without words the door reports missing arguments."""
        tool, reason = self.tags[tag], NO_MATCH
        if not isinstance(tool, str) and is_template(tool, words):
            self._cut_line(start, end, True)  # it only repeats the prompt
            reason = TEMPLATE
        elif tag not in self.slow:
            try:
                if (form := tag_form(tool, words)) is not None:
                    return form
            except TimeoutError:
                self.slow.add(tag)
        if reason == NO_MATCH and tag in self.slow:
            reason = TOO_SLOW
        self.passed[start + self.base] = reason
        if tag not in self.told and not isinstance(tool, str):
            self.told.add(tag)
            self.errors.append(tag_fault(tool, reason, self.lines.at(start)))
        return None

    def hint(self, name: str, *, json: bool = False) -> str:
        """The hint that shows how to call the tool of that name: the line of its tag in the dialect tags."""
        if not self.tagged:
            return super().hint(name, json=json)
        tool = self.tagged.get(kebab(name))
        return f"write {tag_line(tool)}" if tool else "write the line of its tag, TAG: and what it takes"

    def _cut_line(self, start: int, end: int, spared: bool) -> None:
        """Remove a line of a tag from the text, and remember whether it is hidden from people."""
        if not self.cuts or self.cuts[-1][1] <= start + self.base:
            self._cut_out(start, end)
        self.whole[self.cuts[-1][0]] = spared

    def _at_start(self, found: re.Match[str]) -> None:
        start = self.position = found.end()
        column = self.lines.at(start)[1]
        language = found["language"]
        if language is not None and found["opener"] != "(":
            self._need_line(start)
        opener = found["opener"]
        allowed = LISP_FENCES if opener == "(" else DATA_FENCES
        foreign = language is not None and language.lower() not in allowed
        if foreign or not self._allows(allowed) or (self.rightmost and column > self.rightmost):
            self.position += 1
            return
        self.rightmost = 0
        self.example = self._is_example(found.start())
        self._one(opener)

    def _is_example(self, start: int) -> bool:
        """Whether the form at the start of this line is announced as an example, or directly follows one in
        its paragraph."""
        before = self.example_end - self.base
        if self._announced(start):
            return True
        if before < 0 or start - before > CONTEXT:
            return False
        between = self.text[before:start]
        return not between.strip() and not _PARAGRAPH.search(between)

    def _is_told(self, start: int) -> bool:
        """Whether the tag at the start of this line is in a paragraph that is announced as an example or a
        quotation, in its first line or a later one: a repeated message has further lines."""
        before = self.example_end - self.base
        near = self.example_end >= 0 and start - before <= CONTEXT
        if near and not _PARAGRAPH.search(self.text, max(0, before), start):
            return True
        least = max(self._since(start), self.own_to - self.base)
        place = start
        while not self._announced(place, self._since(start)):
            line = self.text.rfind("\n", max(0, least - 1), max(0, place - 1)) + 1
            if line < least or not self.text[line:place].strip():
                self.own_to = start + self.base
                return False
            place = line
        return True

    def _chain(self) -> bool:
        """Read the form directly after another one."""
        following, perhaps = (pattern.match(self.text, self.position) for pattern in _NEXT[self.chained])
        if following is None:
            if perhaps and not self.final:
                raise Wait
            self.chained = ""
            return True
        self.example = self.example and not _PARAGRAPH.search(following[0])
        if self.cuts and self.cuts[-1][1] == self.position + self.base and self.chained == "{":
            self.cuts[-1] = self.cuts[-1][0], following.end() + self.base  # the comma is not text
        opener, self.position, self.chained = self.chained, following.end(), ""
        self._one(opener)
        return True

    def _one(self, opener: str) -> None:
        """Read the form at the position."""
        if opener == "(":
            self._lisp()
        elif opener == "{":
            self._json()
        elif opener == "[":
            self._list()
        else:
            self._python()
        if self.example:
            self.example_end = self.position + self.base
