"""The reader agrees with Hy's own or refuses; it runs nothing and tells every mistake in a sentence."""

from __future__ import annotations

import pickle
import warnings

import hy
import pytest
from examples import examples
from hy.models import (
    Bytes,
    Complex,
    Dict,
    Expression,
    FComponent,
    Float,
    FString,
    Integer,
    Keyword,
    List,
    Sequence,
    Set,
    String,
    Symbol,
    Tuple,
)
from hypothesis import example, given
from hypothesis import strategies as st
from sentences import (
    BEFORE_THE_NEXT_FORM,
    DOES_NOT_CLOSE_THE,
    EXPECTED_ONE_FORM_FOUND_A,
    IS_LONGER_THAN,
    IS_NEVER_CLOSED,
    NESTED_DEEPER_THAN,
    THERE_ARE_MORE_THAN,
    THIS_STRING_IS_NEVER_CLOSED,
)

from quoth.tools.errors import QuothError
from quoth.tools.lisp.reader import LineIndex, ReaderLimits, ReadError, read_all, read_one, read_prefix
from quoth.tools.lisp.strings import Strings


def shape(model):
    """Everything a model says: type, value, what == of Hy leaves out, and the position."""
    place = (model.start_line, model.start_column, model.end_line, model.end_column)
    extra = tuple(
        getattr(model, name, None) for name in ("brackets", "conversion", "expression", "is_tstring")
    )
    if isinstance(model, Sequence):
        return type(model), tuple(shape(item) for item in model), extra, place
    value = repr(model) if isinstance(model, Float | Complex) else model
    return type(model), value, extra, place


def shapes(models):
    return [shape(model) for model in models]


def by_hy(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(hy.read_many(text))


def failure(text, **limits):
    with pytest.raises(ReadError) as caught:
        read_all(text, ReaderLimits(**limits))
    return caught.value


# ---- agreement with Hy

AGREED = [
    "",
    " \t\n; only a comment",
    '(grep-search :pattern "TODO" :path "src")',
    "()[]{}#()#{}",
    "(a [b {c d} #(e f) #{g h}] (((i))))",
    "  (a\n   (b\n\n c) ; comment ) here\n d)\n\n e",
    "a b-c *d* <= + - -> ->> ... .. . % | a|b \\x x! y? @z ^ & é λ変数 🙂 _ __init__",
    "a#b a,b a:b a/b ,x 1/2 1a -a +a -- +- 1-2 j J nan inf -inf iNf INF naN nanj",
    "a.b.c .foo ..foo ...foo.bar a.b-c (.join x y) foo.j",
    "0 1 -1 +1 007 -007 42 1_000 1,000 1, 1_ -1_0 +_1 0x1F 0o17 0b101 0xFF_FF 999999999999999999999999",
    "1.5 .5 5. -0.0 1e3 1E-3 1_0.5 1e400 NaN Inf -Inf +NaN Infinity _1 ._5 ١٢",
    "1j 2+3j -1.5e3-2J Inf+NaNj +j -j 1,0+2,0j j_ .5j",
    ":foo : ::bar :a-b :a/b :1 :! (:a b) :a(:b)",
    ':a"text"',
    '"" "a" "two\nlines" "tab\\t" "a""b" "é変🙂" "\x00"',
    r'"\n\r\t\\\"\'\a\b\f\v \0 \7 \18 \101 \377 \x41 \u3042 \U0001F600 \N{EM DASH}"',
    r'"\\あ é\t変 \u00e9" "continued \
line"',
    '"cr\r\nlf\rend" "esc\\\r\nx" "esc\\\ry"',
    '"a\\\\/b\\n" "\\b\\f\r\n\\n" "\\u00e9\\n\\\\ud" "two\nlines\\n" "é\\n变"',
    r'r"\d+\"" r"" rb"\d" br"\x"',
    r'b"bytes \x00\xff\'\"\\ \101" b"" b"a' + '\r\n"',
    "#[[]] #[[a]] #[[a]b]] #[x[a]]b]x] #[[\nfirst\n]] #[[\r\n\r\nx]] #[a b[c]a b] #[[\\d]]",
    "#[fx[{a}]fx] #[t[{a}]t]",
    "#[==[a]=]]==] #[x[]x] #[f x[{a}]f x]",
    "'a `a ~a ~@a ~ @a '(a) ''a `(a ~b ~@c) ' a '; x\n a '#_ b a",
    "#* a #** b (f #*[1] #**{2 3} #* (g))",
    "#^ int x #^ (get list int) y #^ int #^ str z #^(a) b",
    "#_ a b #_(c d) e #_ #_ f g h (i #_ j) [#_ '#_ k l m]",
    'f"" f"a" f"{x}" f"a{x}b{y}c" f"{{}}" f"{{{x}}}" f"{x}{y}"',
    'f"{ x }" f"{x !r}" f"{x !s :>10}" f"{x :{w}.{p}}" f"{x :a{(f y) !r :{z}}b}" f"{x :}" f"{x !r:y}"',
    'f"{(f "inner")}" f"{f"{y}"}" f"{{\\n\\x41\\N{EM DASH}}}{x}"',
    'f"two\nlines{x}\nthree{\n; note\n#_ z\n y\n:\n {q}\n}\n"',
    'f"{x}\\\n" f"\\\n{x}a\\\nb"',
    'f"{"a":>5}" f"{{a}b" '.replace("{{a}b", "{{a}}b"),
    'f"{ {"a" 1} }" f"{#(1 2)}" f"{\'a}" f"{~@a}" f"é{x}変\\t" f"\r\n{x}\r"',
    '(f f"{(do-mac (print 1))}" "x")\n  "y"',
]


@pytest.mark.parametrize("text", AGREED)
def test_what_both_read_has_the_same_types_values_and_positions(text):
    assert shapes(read_all(text)) == shapes(by_hy(text))


HY_REFUSES = [
    *[
        "(",
        ")",
        "(]",
        "[)",
        '"',
        '"\\d"',
        "a..b",
        "a.",
        "a.1",
        "1.a",
        "a.b.",
        ".a.",
        ":a.b",
        "'",
        "(')",
        "~",
        "#",
        "# a",
    ],
    *[
        "#_",
        "(#_)",
        "#*",
        "#*x",
        "#_x",
        "#^ int",
        "#foo",
        "#'f",
        "#.(f)",
        '#"a"',
        "#[a",
        "#[a]",
        "#[[a]",
        'a"b"',
        '1"a"',
    ],
    *[
        'bb"a"',
        'rbf"a"',
        'B"a"',
        'b"é"',
        'b"\\u1234"',
        '"\\x4"',
        '"\\u12"',
        '"\\U00110000"',
        '"\\N{no such name}"',
    ],
    *[
        '"\\N"',
        '"\\/"',
        '"\\n\\/"',
        'f"{"',
        'f"}"',
        'f"{}"',
        'f"{x"',
        'f"{x y}"',
        'f"{x)}"',
        'f"{(x}"',
        'f"{x :"',
        'f"\\{x}"',
        "#!x",
        "#|x|#",
    ],
]


@pytest.mark.parametrize("text", HY_REFUSES)
def test_what_hy_refuses_is_refused(text):
    with pytest.raises(Exception):  # noqa: B017
        by_hy(text)
    failure(text)


OURS_ALONE = [
    *[
        'f"{x =}"',
        'f"{x !z}"',
        'rf"{x}"',
        'fr"{x}"',
        't"{x}"',
        "#[f[{x}]f]",
        "#[f-a[{x}]f-a]",
        'f"{x :"}"',
        'f"{x :\\t}"',
    ],
    *[
        'f"{x :{{}"',
        'f"\\\\N{x}"',
        '"\\400"',
        '"\\ud800"',
        '"\\n\ud800"',
        '"\\ud83d\\ude00"',
        '"\\U0000d800"',
        '"\ud800"',
        "#[[\udfff]]",
    ],
    *[
        "a\u00a0b",
        "\u00a01",
        "a\x00",
        ":a\u200b",
        "\ud800",
        "a.:b",
        "a.#b",
        "#[a\nb[x]a\nb]",
        "\x1c",
        "1" * 1001,
    ],
]


@pytest.mark.parametrize("text", OURS_ALONE)
def test_what_could_surprise_is_refused_though_hy_reads_it(text):
    by_hy(text)
    failure(text)


def positionless(model):
    """The shape without positions and without what depends on how the text is laid out."""
    kind, value, extra, _ = shape(model)
    if isinstance(model, Sequence):
        return kind, tuple(positionless(item) for item in model), extra
    return kind, value, extra


NAME = st.text("abcxyzé変-_+*/<>=!?#:,0123456789", min_size=1, max_size=8)
LEGAL_NAME = NAME.filter(lambda s: s[0] not in ":#" and not s[0].isdigit())
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


def symbols():
    def legal(name):
        try:
            return isinstance(Symbol(name), Symbol)
        except ValueError:
            return False

    return LEGAL_NAME.filter(legal).map(Symbol)


def dotted():
    return st.lists(symbols(), min_size=2, max_size=3).map(lambda parts: Expression([Symbol("."), *parts]))


LEAVES = st.one_of(
    symbols(),
    dotted(),
    NAME.map(Keyword),
    TEXT.map(String),
    st.text('ab]=\n\\"{}', max_size=8)
    .filter(lambda s: "]=]" not in s)
    .map(lambda s: String(s, brackets="=")),
    st.binary(max_size=10).map(Bytes),
    st.integers().map(Integer),
    st.floats().map(Float),
    st.complex_numbers().map(Complex),
)


def grown(inner):
    items = st.lists(inner, max_size=4)
    field = st.builds(
        lambda form, conversion, spec: FComponent([form, *spec], conversion=conversion),
        inner,
        st.sampled_from([None, "r", "s", "a"]),
        st.sampled_from([[], [String(">10")]]),
    )
    pieces = st.lists(st.one_of(TEXT.filter(bool).map(String), field), max_size=3)
    headed = [
        items.map(lambda x, head=head: Expression([Symbol(head), *x[:1]]))
        for head in ("quote", "quasiquote", "unquote", "unquote-splice", "unpack-iterable", "unpack-mapping")
    ]
    plain = [items.map(kind) for kind in (Expression, List, Dict, Tuple, Set)]
    return st.one_of(*plain, *headed, pieces.map(FString))


@examples(3)
@given(st.recursive(LEAVES, grown, max_leaves=12))
def test_every_model_that_hy_prints_and_reads_is_read_alike(model):
    text = hy.repr(model).removeprefix("'")
    try:
        expected = by_hy(text)
    except hy.reader.exceptions.LexException:
        return  # hy.repr cannot print every model
    try:
        ours = read_all(text)
    except ReadError as error:
        ours = str(error)
    if isinstance(ours, str):
        assert any(reason in ours for reason in REFUSED_ON_PURPOSE), text
    else:
        assert shapes(ours) == shapes(expected)


REFUSED_ON_PURPOSE = [
    "is not allowed in a format spec",
    "cannot be a part of a dotted name",
    "is not allowed in a name",
]
REFUSED_ON_PURPOSE += ["of the f-string, found =", r"\\ is not an escape here"]

PIECES = [
    *"()[]{}'`~@#:.;\"\\ \n\r\t-+_,=!<|*^&%/abfrjxnuN01789eInf\u00a0é変🙂\x00",
    *[
        'f"',
        'r"',
        'b"',
        'rb"',
        "#[[",
        "]]",
        "#(",
        "#{",
        "#_ ",
        "#* ",
        "#** ",
        "#^ ",
        "~@",
        "{{",
        "}}",
        "\\n",
        "\\x41",
    ],
    *[
        "\\N{EM DASH}",
        "\\\\N{",
        "!r",
        ":>",
        "NaN",
        "Inf",
        "1j",
        "1e5",
        "a.b",
        ".a",
        ":k ",
        "(a ",
        " b)",
        "\r\n",
        "\\\n",
        "{x}",
    ],
]


@examples(10)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example('f"\\\\N{x}"')
@example('f"{x :{y}}"')
def test_any_text_is_read_as_hy_reads_it_or_refused(text):
    try:
        ours = read_all(text)
    except ReadError:
        return
    assert shapes(ours) == shapes(by_hy(text))


# The subset that both read, as a grammar: whatever it makes, Hy reads, and so do we, alike.

BLANK = st.sampled_from([" ", "  ", "\n", "\t", "\r\n", " ; a ) comment\n", " #_ (left out) ", "\n\n  "])
ESCAPES = ["\\n", "\\\\", '\\"', "\\x41", "\\u00e9", "\\U0001F600", "\\N{EM DASH}", "\\101", "\\\n"]
QUOTED = st.lists(st.sampled_from([*ESCAPES, "a", " ", "é", "(", ";", "\n"]), max_size=6).map("".join)
ATOMS = st.one_of(
    st.sampled_from(["a", "b-c", "+", "<=", "a.b", ".join", "None", "True", "é", "x!", "*y*", "->", "..."]),
    st.sampled_from(
        [":k", ":a-b", ":1", "0", "-7", "42", "1_000", "0xFF", "1.5", "-0.0", "1e3", "NaN", "2j"]
    ),
    QUOTED.map('"{}"'.format),
    st.text("ab \\n[", max_size=5).map("#[[{}]]".format),
    st.text("ab \\d", max_size=5).filter(lambda s: not s.endswith("\\")).map('r"{}"'.format),
    st.sampled_from(['b"a\\x00"', 'f"a{x}b"', 'f"{(f 1) !r :>3}"', "#^ int x"]),
)


def nested(inner):
    spaced = st.lists(st.tuples(BLANK, inner).map("".join), max_size=4).map("".join)
    brackets = st.sampled_from(["({} )", "[{} ]", "{{{} }}", "#({} )", "#{{{} }}"])
    return st.one_of(
        st.tuples(brackets, spaced).map(lambda pair: pair[0].format(pair[1])),
        st.tuples(st.sampled_from(["'", "`", "~", "~@", "#* ", "#** "]), inner).map("".join),
    )


@examples(3)
@given(st.lists(st.tuples(st.recursive(ATOMS, nested, max_leaves=10), BLANK).map("".join), max_size=4))
def test_every_text_of_the_common_grammar_is_read_alike(texts):
    text = "".join(texts)
    assert shapes(read_all(text)) == shapes(by_hy(text))


@examples(3)
@given(st.text(max_size=30) | st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example('"\\')
@example('b"\\')
@example('f"\\')
def test_only_a_read_error_escapes(text):
    try:
        read_all(text)
    except ReadError as error:
        told = str(error), error.caret().count("\n"), error.source_line
    else:
        told = "line", 1, ""
    assert told[0].startswith("line")
    assert told[1] == 1
    assert "\n" not in told[2]


@examples(3)
@given(st.lists(st.sampled_from(PIECES), max_size=10).map("".join))
def test_a_form_is_read_alike_wherever_it_begins(text):
    text = text.strip(" \t\n\r\f\v")
    try:
        alone = read_all(text)
    except ReadError:
        alone = []
    if alone and ";" not in text:  # a comment would reach into the words behind
        whole = f"some prose\n and more {text} more (prose"
        form, stop = read_prefix(whole, whole.index("more ") + 5)
        assert positionless(form) == positionless(alone[0])
        assert (form.end_line, form.end_column) == LineIndex(whole).at(stop - 1)


# ---- nothing runs


def test_macros_inside_an_f_string_stay_data():
    form = read_one('f"{(do-mac (print "ran")) :{(eval-and-compile x)}}"')
    assert form[0][0] == Expression([Symbol("do-mac"), Expression([Symbol("print"), String("ran")])])
    assert form[0][1][0][0] == Symbol("eval-and-compile")


def test_reader_macros_of_the_caller_are_not_known():
    globals()["_hy_reader_macros"] = {"boom": lambda *_: pytest.fail("ran")}
    try:
        assert failure("#boom (x)").message == "reader macros are not read here: #boom"
    finally:
        del globals()["_hy_reader_macros"]


# ---- mistakes

HINT_U = r"write four hexadecimal digits, as in \u00e9; a character that needs more, write itself"
HINT_BIG_U = r"write the eight hexadecimal digits of a character, as in \U0001F600"
HINT_N = r"write the name of a character in braces, as in \N{EM DASH}"
HINT_PREFIX = r"put a space before the quote, or, inside a string, write \" for it"
MISTAKES = [
    # text, message, line, column, hint, incomplete
    ("(a (b", f"this ( {IS_NEVER_CLOSED}", 1, 4, "add )) at the end", True),
    ("(a 1\n(b 2)", f"this ( {IS_NEVER_CLOSED}", 1, 1, f"add ) {BEFORE_THE_NEXT_FORM}, (b 2)", True),
    ("(a 1\n\n(b (c", f"this ( {IS_NEVER_CLOSED}", 1, 1, f"add ) {BEFORE_THE_NEXT_FORM}, (b (c", True),
    ("(a (b [1\n  (c)\n(d)\n(e)", "this [ is never closed", 1, 7, "add ])) before the next form, (d)", True),
    ("(a\n (b)\n (c)", f"this ( {IS_NEVER_CLOSED}", 1, 1, "add ) at the end", True),
    (" (a\n (b)", f"this ( {IS_NEVER_CLOSED}", 1, 2, f"add ) {BEFORE_THE_NEXT_FORM}, (b)", True),
    ("(a #{b", f"this #{{ {IS_NEVER_CLOSED}", 1, 4, "add }) at the end", True),
    ("(a))", "there is no open form for this )", 1, 4, "remove it", False),
    ("(a\n  (b]", f"this ] {DOES_NOT_CLOSE_THE} ( at line 2, column 3", 2, 5, "write ) instead", False),
    ("(a [b (c d])", f"this ] {DOES_NOT_CLOSE_THE} ( at line 1, column 7", 1, 11, "add ) before it", False),
    (
        "(a '",
        "there is no form after this '",
        1,
        4,
        'add one; a text is written in double quotes, "like this"',
        True,
    ),
    (
        "(a ')",
        "there is no form after this '",
        1,
        4,
        'add one; a text is written in double quotes, "like this"',
        False,
    ),
    ("#^ int", "there is no form after this #^", 1, 1, "add one", True),
    ("(#_)", "there is no form after this #_", 1, 2, "add one", False),
    (
        '(say "hello)',
        THIS_STRING_IS_NEVER_CLOSED,
        1,
        6,
        r'add ") at the end, or write \" for a quote inside',
        True,
    ),
    (
        '(say r"\\"',
        THIS_STRING_IS_NEVER_CLOSED,
        1,
        6,
        r'add ") at the end, or write \" for a quote inside',
        True,
    ),
    ("#=", "reader macros are not read here: #=", 1, 1, "write a plain form", False),
    ("(a #[x[b]]", THIS_STRING_IS_NEVER_CLOSED, 1, 4, "add ]x]) at the end", True),
    ("#[x", "this #[ does not begin a bracket string", 1, 1, "write #[[text]]", True),
    ("#[x]", "this #[ does not begin a bracket string", 1, 1, "write #[[text]]", False),
    ('"a\\d"', r"\d is not an escape here", 1, 3, r'write \\ for a backslash, or r"…"', False),
    ('b"\\u0041"', r"\u is not an escape here", 1, 3, r"write \\ for a backslash", False),
    ('"\\x4"', r"\x is not an escape here", 1, 2, r"write two hexadecimal digits, as in \x41", False),
    ('"\\u12"', r"\u is not an escape here", 1, 2, HINT_U, False),
    ('"\\ud83d\\ude00"', r"\u is not an escape here", 1, 2, HINT_U, False),
    ('"\\UFFFFFFFF"', r"\U is not an escape here", 1, 2, HINT_BIG_U, False),
    ('"\\N{X Y}"', r"no character has the name in \N{X Y}", 1, 2, "write the character itself", False),
    ('"\\N"', r"\N is not an escape here", 1, 2, HINT_N, False),
    ('"\\777"', r"\7 is not an escape here", 1, 2, r"an octal escape ends at \377", False),
    ('f"a{x}\\d"', r"\d is not an escape here", 1, 7, r'write \\ for a backslash, or r"…"', False),
    ('b"aé"', r"bytes can contain only ASCII, not '\xe9'", 1, 4, r"write \xNN, or drop the b", False),
    ('u"a"', "no string has the prefix u", 1, 1, HINT_PREFIX, False),
    ('rf"a"', 'rf"…" strings are not read here', 1, 1, 'write "…", r"…", b"…" or f"…"', False),
    ("#.(f)", "reader macros are not read here: #.", 1, 1, "nothing is evaluated while reading", False),
    ("(map #'f x)", "reader macros are not read here: #'", 1, 6, "write the name alone", False),
    ("#_x", "reader macros are not read here: #_x", 1, 1, "put a space after #_", False),
    ("(f #**x)", "reader macros are not read here: #**x", 1, 4, "put a space after #**", False),
    ("#t", "reader macros are not read here: #t", 1, 1, "write True", False),
    ("# a", "there is a # alone here", 1, 1, "remove it", False),
    ("a..b", "several dots inside the name a..b", 1, 1, "write one dot between the parts", False),
    ("(a b.)", "the name b. ends with a dot", 1, 4, "remove the dot", False),
    (
        "a.1",
        "1 cannot be a part of a dotted name",
        1,
        1,
        "write a number, or a name whose parts are names",
        False,
    ),
    (":a.b", "the keyword :a.b contains a dot", 1, 1, "write - or _ instead of it", False),
    ("a\u00a0b", "the character U+00A0 is not allowed in a name", 1, 2, "write a plain space", False),
    ("a\u200b", "the character U+200B is not allowed in a name", 1, 2, "remove it", False),
    (
        '"\ud800"',
        "the character U+D800 is half of a surrogate pair",
        1,
        2,
        "write the character itself",
        False,
    ),
    ('f"a}"', "a single } in an f-string", 1, 4, "write }} for a brace", False),
    ('f"{}"', "there is no form in this {} of an f-string", 1, 3, "write {{}} for braces", False),
    (
        'f"{a b}"',
        "expected } of the f-string, found b",
        1,
        6,
        "write !r, !s or !a after the form, then :spec, each after a space",
        False,
    ),
    ('(f f"{a ', f"this {{ of an f-string {IS_NEVER_CLOSED}", 1, 6, 'add }") at the end', True),
    ('(f f"{a} ', f'this f" {IS_NEVER_CLOSED}', 1, 4, 'add ") at the end', True),
    ('f"{a :{{}}"', "{ is not allowed in a format spec", 1, 7, "compute it in a nested {form}", False),
]


@pytest.mark.parametrize(("text", "message", "line", "column", "hint", "incomplete"), MISTAKES)
def test_a_mistake_is_told_with_its_place_and_its_remedy(text, message, line, column, hint, incomplete):
    error = failure(text)
    told = (error.message, error.line, error.column, error.hint, error.incomplete)
    assert told == (message, line, column, hint, incomplete)


def test_the_sentence_holds_place_message_and_hint():
    error = failure("(a\n (b")
    assert str(error) == f"line 2, column 2: this ( {IS_NEVER_CLOSED}; add )) at the end"
    assert isinstance(error, QuothError)


def test_an_error_survives_pickling():
    error = failure("(a")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.incomplete, copy.caret()) == (str(error), True, error.caret())


def test_the_caret_stands_under_the_column():
    assert failure("(a)\n\t(b]\n").caret() == "\t(b]\n\t  ^"
    assert failure("(変 e\u0301 ])\r\n").caret() == "(変 e\u0301 ])\n      ^"


def test_the_caret_of_a_long_line_shows_a_window():
    source, caret = failure("(" + "x" * 5000 + " ]" + "y" * 5000 + ")").caret().split("\n")
    assert source[0] == source[-1] == "…"
    assert len(source) == 82
    assert source[caret.index("^")] == "]"


def test_the_caret_keeps_control_characters_from_the_terminal():
    assert failure("(a \x1b[31m ]").caret().split("\n")[0] == "(a \ufffd[31m ]"


# ---- bounds


def test_nesting_stops_at_the_limit():
    assert len(read_all("(" * 200 + ")" * 200)) == 1
    error = failure("(" * 300 + ")" * 300)
    assert (error.message, error.column) == (f"{NESTED_DEEPER_THAN} 200", 201)


@pytest.mark.parametrize("opener", ["(", "[", "#(", "'", "~@", "#_ ", "#^ ", 'f"{', 'f"{x :{', "(a #_ ["])
def test_depth_of_a_hundred_thousand_is_an_error_and_no_recursion(opener):
    assert failure(opener * 100_000).message == f"{NESTED_DEEPER_THAN} 200"


def test_a_deep_limit_needs_no_recursion():
    text = "(" * 50_000 + ")" * 50_000
    form = read_one(text, ReaderLimits(max_depth=50_000))
    depth = 1
    while form:
        form = form[0]
        depth += 1
    assert depth == 50_000


@pytest.mark.parametrize(
    "text", ["a " * 11, "(a b)(c d)(e f) g h", "#_ a " * 11, "a.b.c.d.e.f.g.h.i.j.k", "'a 'b 'c 'd 'e 'f"]
)
def test_nodes_are_counted(text):
    assert failure(text, max_forms=10).message == f"{THERE_ARE_MORE_THAN} 10 forms here"


def test_as_many_nodes_as_allowed_are_read():
    assert len(read_all("a " * 10, ReaderLimits(max_forms=10))) == 10


def test_a_text_too_long_is_refused():
    assert failure("a" * 11, max_chars=10).message == "the text has 11 characters, more than the 10 allowed"


@pytest.mark.parametrize(
    "number", ["9" * 5000, "-" + "9" * 5000, "1_" * 3000, "0x" + "f" * 5000, "1." + "9" * 5000]
)
def test_a_number_of_many_digits_is_refused(number):
    for limits in ({}, {"max_digits": 10**9}):
        assert "digits" in failure(f"(f {number})", **limits).message


def test_dense_escapes_and_quotes_are_read():
    text = '"' + '\\"\\\\\\n' * 100_000 + '"'
    assert read_one(text) == String('"\\\n' * 100_000)


# ---- one form, and a form inside a text


@pytest.mark.parametrize("text", ["", "  ; note\n", "#_ a"])
def test_one_form_is_expected_and_none_is_found(text):
    with pytest.raises(ReadError, match="there is no form here") as caught:
        read_one(text)
    assert caught.value.incomplete


@pytest.mark.parametrize(
    ("text", "line", "column"), [("(a) b", 1, 5), ("a\n ; note\n (b)", 3, 2), ("a #_ x\n'b", 2, 1)]
)
def test_one_form_is_expected_and_a_second_is_found(text, line, column):
    with pytest.raises(ReadError, match=EXPECTED_ONE_FORM_FOUND_A) as caught:
        read_one(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert caught.value.source_line == text.split("\n")[line - 1]


@pytest.mark.parametrize("text", ["(a) )", '(a) "'])
def test_after_the_one_form_mistakes_are_still_told(text):
    with pytest.raises(ReadError):
        read_one(text)


def test_one_form_may_stand_between_comments():
    assert read_one("; before\n (a) ; after\n #_ b") == Expression([Symbol("a")])


def test_a_form_is_read_out_of_prose():
    text = 'First look:\n  (read-file :path "a\nb"), then stop)'
    form, stop = read_prefix(text, text.index("("))
    assert text[stop:] == ", then stop)"
    assert (form.start_line, form.start_column, form.end_line, form.end_column) == (2, 3, 3, 3)
    assert (form[2].start_line, form[2].start_column, form[2].end_column) == (2, 20, 2)


def test_what_stands_before_and_behind_the_form_is_not_looked_at():
    text = '"\\d ) (a b) ] "\\q'
    assert read_prefix(text, 6)[1] == 11


def test_forms_of_one_text_can_share_its_lines():
    text = "(a)\n" * 3000
    lines = LineIndex(text)
    starts = [read_prefix(text, offset, lines=lines)[0].start_line for offset in range(0, len(text), 4)]
    assert starts == list(range(1, 3001))


def test_lines_tell_line_and_column_of_every_offset():
    text = "ab\n\nc"
    assert [LineIndex(text).at(i) for i in range(6)] == [(1, 1), (1, 2), (1, 3), (2, 1), (3, 1), (3, 2)]


@pytest.mark.parametrize("start", [-1, 0, 1, 3, 7, 8, 99])
def test_no_form_begins_at_a_space_a_comment_or_outside(start):
    with pytest.raises(ReadError, match="there is no form here"):
        read_prefix(" ;x\n(a) ", start)


def test_the_limit_on_characters_holds_for_the_form_and_not_for_the_text():
    text = "x" * 100 + " (abc) " + "y" * 100
    assert read_prefix(text, 101, ReaderLimits(max_chars=5))[1] == 106
    for start, limits in ((101, ReaderLimits(max_chars=4)), (0, ReaderLimits(max_chars=99))):
        with pytest.raises(ReadError, match=f"this form {IS_LONGER_THAN}") as caught:
            read_prefix(text, start, limits)
        assert not caught.value.incomplete
    assert read_prefix(text, 0, ReaderLimits(max_chars=100))[1] == 100


def test_an_error_in_prose_is_placed_in_the_whole_text():
    with pytest.raises(ReadError) as caught:
        read_prefix("prose\nand (a ]) more", 10)
    assert (caught.value.line, caught.value.column) == (2, 8)
    assert caught.value.caret() == "and (a ]) more\n       ^"


PIECES = [
    *(r"\\", r"\n", r"\/", r"\ud800", r"\uD83D\uDE00", r"\"", r"\x41", r"\N{DASH}", "\\"),
    *("n", "t", "u", "x", "N", "U", "/", "b", "0", "12", "00e9", "d83d", "ude00", "{DASH}"),
    *("\r", "\n", "\t", "'", "é", "\0", "\x7f", " "),
]
ESCAPED = st.lists(st.sampled_from(PIECES), max_size=8).map("".join)


@given(ESCAPED)
def test_a_string_read_as_json_is_the_one_read_by_hys_rules(body: str) -> None:
    text = f'"{body}"'
    fast = Strings(text, LineIndex(text), len(text))._escaped(0)
    if fast is not None:
        assert fast == Strings(text, LineIndex(text), len(text))._string(0, "")
        assert type(fast[0]) is String


@pytest.mark.parametrize("body", ["a\\nb", "\\u00e9", 'say \\"hi\\"', "back\\\\slash"])
def test_the_escapes_that_json_shares_are_read_as_json(body: str) -> None:
    text = f'"{body}"'
    assert Strings(text, LineIndex(text), len(text))._escaped(0) is not None
