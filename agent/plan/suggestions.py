"""Suggests corrections for text that looks like plan syntax but is not: misspelt TODO words, headlines and
properties, or words of other tools.

Functions about a line return the column of the mistake, from 0, and a sentence.
"""

from __future__ import annotations

import re

from quoth.agent.plan.model import INHERITED, LANGUAGES, ORGS, OWN, TODO_WORDS, phase_of
from quoth.tools.advice import instead
from quoth.tools.errors import SURE, did_you_mean, nearest
from quoth.tools.text import short

OURS = (*INHERITED, "EXPECT", "AFTER")  # besides ids, which Org has too
# Languages whose blocks a person may expect to run.
_PROGRAMMING = {
    *("python", "py", "sh", "bash", "shell", "js", "javascript", "ruby"),
    *("elisp", "emacs-lisp", "scheme", "clojure"),
}
# Keywords of Org that look like slips of quoth's keywords.
_KEYWORDS = ("TITLE", "PROPERTY", "NAME", "CALL", "HEADER", "TODO")

_QUOTED = re.compile(r"[ \t]*(,)(?:\*+ |#\+\w)")
_ONE_LINE = re.compile(r"[ \t]*(:PROPERTIES:)[ \t]+\S", re.IGNORECASE)
_INLINE = re.compile(r"\bsrc_(?:" + "|".join(LANGUAGES) + r")[\[{]")
_EXAMPLE = re.compile(r"[ \t]*#\+begin_example[ \t]+(" + "|".join(LANGUAGES) + r")[ \t]*$", re.IGNORECASE)
_LIKE_SRC = re.compile(
    r"[ \t]*#[ \t]*\+?[ \t]*begin[-_: \t]*(?:src|scr|sources?)\b(?:[ \t]+(\S+))?", re.IGNORECASE
)
_SRC = re.compile(r"[ \t]*#\+begin_src\b", re.IGNORECASE)
_ORG = re.compile(r"[ \t]*(?:#\+[A-Za-z_]+|:PROPERTIES:|\*+ (?:" + "|".join(TODO_WORDS) + r")\b)")
_HEADING = re.compile(r"(#{1,6})([A-Za-z]+)")
_SPECIAL = re.compile(r"[ \t]*#\+begin_(\S+)", re.IGNORECASE)
FENCES = ("```", "~~~")  # of blocks in Markdown

_STARS = re.compile(r"([ \t]*)(\*+|#{2,})([ \t]*)(\S.*)")
_PROPERTY = re.compile(r"[ \t]*(?:[-*+][ \t]+)?(:?)([A-Z][A-Z_-]+)\+?:(?=[ \t]|$)")
_NO_COLON = re.compile(r"[ \t]*[-*+][ \t]+([A-Z][A-Z-]+)[ \t]+(\S.*)")
_WORD = re.compile(r"([A-Za-z]+)(:?)(?=\s|$)")
_CAPITALS = re.compile(r"[A-Z][A-Z_-]{2,}(?=:?(?:\s|$))")


def meant_property(name: str) -> str:
    """Return `` Did you mean NAME?`` for a property that resembles one of plans, or an empty text. A synonym
    such as ``DEPENDS`` is found only in capitals or in lower case."""
    upper = name.upper()
    if upper in ORGS or upper.startswith(("HEADER-ARGS", "EXPORT_")):
        return ""
    close = nearest(upper, (*INHERITED, *OWN), SURE)
    other = instead("property").get(upper.replace("_", "-")) if name in (upper, name.lower()) else None
    return f" Did you mean {other or close}?" if other or close else ""


def meant_word(title: str, holds: str = "", late: bool = False) -> str:
    """Return the mistake in the first word of a title, if it was probably meant as a TODO word. ``holds``
    says what is below the headline: ``forms`` (or properties of plans), ``prose`` or ``steps``; ``late``
    means that the title does not begin directly after the stars."""
    if found := _CAPITALS.match(title):
        word = found[0]
        if word in TODO_WORDS and title[len(word) :].startswith(":"):
            return f"Write the TODO word without a colon: {word}."
        if word in TODO_WORDS:
            return f"{word} is too late for a TODO word, which must follow the stars." if late else ""
        if nearest(word, TODO_WORDS) or word in ("TODO", "NEXT", "CANCELED", "CANCELLED"):
            return no_word(word)
    found = _WORD.match(title)
    if not found or found[1].upper() not in TODO_WORDS:
        return ""
    word, upper = found[1], found[1].upper()
    # "Plan for the week" is a note, but notes do not begin with "plan" or "Plan:".
    odd = word.islower() or found[2] or phase_of(title[found.end() :].lstrip())
    likely = holds == "forms" or (holds == "prose" and upper == "PLAN" and odd)
    return f"{word} is not a TODO word of a plan. Write it in capitals: {upper}." if likely else ""


def no_word(word: str) -> str:
    return f"{word} is not a TODO word of a plan.{did_you_mean(word, TODO_WORDS, 'The words are')}"


def meant_line(line: str, top: bool) -> tuple[int, str] | None:
    """Return the mistake in a line of Org text that looks like syntax. ``top`` means that the line is
    directly below its headline, or only such lines are between."""
    if found := _STARS.match(line):
        title = found[4]
        word = title.split(maxsplit=1)[0].rstrip(":") in TODO_WORDS
        phase = phase_of(title) and not found[1]  # "  * Build: this" may be an item of a list
        if (word or phase) and "*" not in title:
            level = "*" * len(found[2])
            shown = short(title, 60)
            if found[1] or found[2][0] == "#" or not found[3] or "\t" in found[3]:
                return len(
                    found[1]
                ), f"This is not a headline. Write {level} {shown} from the first column on."
    if found := _QUOTED.match(line):
        return found.start(1), "A comma quotes such a line only inside a block; remove the comma here."
    if found := _ONE_LINE.match(line):
        return found.start(1), "Put each property on its own line, between the lines :PROPERTIES: and :END:."
    if found := _INLINE.search(line):
        return found.start(), "This does not run. Put forms between #+begin_src hy and #+end_src."
    if found := _PROPERTY.match(line):
        name = found[2]
        value = line[found.end() :].lstrip()
        if name in OURS and (found[1] or top or value.startswith("(")):
            return found.start(1), f"{name} is a property. Put it into the :PROPERTIES: of a headline."
        if found[1] and name in instead("property"):
            return found.start(1), f"There is no property {name}.{meant_property(name)}"
    if line.lstrip().startswith(FENCES):
        what = "Org has no blocks like this. Write #+begin_src hy and #+end_src around forms, "
        return len(line) - len(line.lstrip()), what + "#+begin_example and #+end_example around text."
    return None


def meant_block(line: str) -> str:
    """Return the mistake in a line that almost begins a block of forms; empty for other lines."""
    special = _EXAMPLE.match(line) or _SPECIAL.match(line)
    if special and special[1].lower() in (*LANGUAGES, "code"):
        language = special[1].lower().replace("code", LANGUAGES[0])
        return f"This is not a block of forms. Write #+begin_src {language} and #+end_src."
    like = None if _SRC.match(line) else _LIKE_SRC.match(line)
    return (
        f"This does not begin a block. Write #+begin_src {like[1] or LANGUAGES[0]} and #+end_src."
        if like
        else ""
    )


def is_ours(line: str) -> bool:
    """Whether a line sets a property of plans in the syntax of an Org drawer."""
    found = _PROPERTY.match(line)
    return bool(found and found[1] and found[2] in OURS)


def meant_markdown(line: str, top: bool) -> tuple[int, str] | None:
    """Return the mistake in a line of Markdown text that looks like syntax; see ``meant_line``."""
    column = len(line) - len(line.lstrip())
    if found := _ORG.match(line):
        return (
            column,
            "This is Org. In Markdown, write # PLAN a, - KEY: value, and ```hy name=x around forms.",
        )
    if (found := _HEADING.match(line)) and (found[2] in TODO_WORDS or phase_of(line[found.start(2) :])):
        return 0, f"This is not a heading. Write {found[1]} {line[found.start(2) :].rstrip()}."
    if (found := _PROPERTY.match(line.upper())) and found[2] in OURS:
        value = line[found.end() :].strip()
        if line.strip().startswith(("- ", "* ", "+ ", ":")) or top:
            what = f"This is text. Put a property directly below its heading: - {found[2]}: {value}"
            return column, what.rstrip()
    if top and (found := _NO_COLON.match(line)) and found[1] in OURS:
        return column, f"A property needs a colon: - {found[1]}: {found[2].rstrip()}."
    return None


def meant_fence(language: str, text: str) -> str:
    """Return the mistake in the language of a fenced block; empty for none."""
    if language in _PROGRAMMING:
        what = f"{language} is not a language of plans: write forms in {', '.join(LANGUAGES)}."
        return f"{what} With ```text it is text for the model."
    if not language and text.lstrip().startswith("(") and text.rstrip().endswith(")"):
        return f"The block has no language: write one of {', '.join(LANGUAGES)} after ```."
    return ""


def meant_keyword(name: str, value: str, whole: bool) -> str:
    """Return the mistake in an unknown keyword line; empty for none. ``whole`` means that the line is above
    all headlines."""
    if name in INHERITED and whole:
        return f"For the whole file, write #+PROPERTY: {name} {value}".rstrip() + "."
    if name in OURS:
        return f"{name} is a property. Put it into the :PROPERTIES: of a headline."
    if name in instead("property"):
        return f"There is no property {name}.{meant_property(name)}"
    if name in (*_KEYWORDS, "SUBTITLE") or "_" in name or "-" in name:
        return ""
    close = nearest(name, (*_KEYWORDS, *OURS), SURE)
    if close is None:
        return ""
    return f"There is no keyword #+{name}. Did you mean {'#+' if close in _KEYWORDS else ''}{close}?"
