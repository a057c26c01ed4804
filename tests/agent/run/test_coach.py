"""The coach of a small model: the steps of a task, doubts about answers, and the few tools that it sees."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from words import files, scripted, tool

from quoth import Agent, ModelOptions, ToolOptions
from quoth.agent.reply import Reply
from quoth.agent.run.evidence import asked_by, numbers_shown
from quoth.tools.consent.requests import Decision, SayYes

PLACE = {
    "team.org": "* Test\n  Lead: Paul Lindgren\n",
    "phones.txt": "Ada Brandt 301\nPaul Lindgren 522\n",
    "stock.txt": "apples 12\npears 30\n",
}
READ_TEAM, READ_PHONES, READ_STOCK = (f'(read-file :path "{name}")' for name in PLACE)


class SaysNo:
    """A person who denies every call."""

    human = False

    async def request(self, tool: Any, call: Any, reason: str) -> Decision:
        return Decision("deny", "Ada")


class Told:
    """A run of a small model with these replies: its Reply, and what each request let the model do."""

    def __init__(self, root: Path, task: str, *replies: str, **options: Any) -> None:
        model = scripted(*replies)
        model.takes_grammar = True
        self.grammars: list[str] = []
        self.heard: list[str] = []
        complete = model.complete

        async def seen(messages: Any, *, grammar: str | None = None, **more: Any) -> Any:
            self.grammars.append(grammar or "")
            self.heard.append(messages[len(messages) - 1]["content"])
            return await complete(messages, **more)

        model.complete = seen  # type: ignore[method-assign]
        with Agent(workspace=files(root, PLACE), model=ModelOptions(model), **options) as agent:
            self.reply: Reply = agent.run(task)

    def may_answer(self, turn: int) -> bool:
        return "words" in self._rule(turn, "root")

    def may_call(self, turn: int) -> set[str]:
        return set(re.findall(r"call-([\w-]+)", self._rule(turn, "call")))

    def paths(self, turn: int) -> set[str]:
        """The only paths that a call may name; empty if it may name any."""
        return set(re.findall(r':path " \("\\"(.+?)\\""\)', self.grammars[turn]))

    def arguments(self, turn: int, tool: str) -> set[str]:
        """The parameters of a tool that a call may give."""
        return set(re.findall(r":([\w-]+) ", self._rule(turn, f"call-{tool}")))

    def _rule(self, turn: int, name: str) -> str:
        found = re.search(rf"^{name} ::= (.*)$", self.grammars[turn], re.MULTILINE)
        return found[1] if found else ""


def test_each_file_that_a_task_names_is_looked_into(tmp_path: Path) -> None:
    task = "Who leads the Test team according to team.org, and which number is theirs in phones.txt?"
    told = Told(tmp_path, task, READ_TEAM, READ_PHONES, "Paul Lindgren has 522.")
    assert [told.paths(turn) for turn in range(3)] == [{"team.org"}, {"phones.txt"}, set()]
    assert [told.may_answer(turn) for turn in range(3)] == [False, False, True]
    assert told.heard[1].endswith("Next: look into phones.txt.")
    assert told.reply.text == "Paul Lindgren has 522."


def test_a_question_never_changes_a_file(tmp_path: Path) -> None:
    told = Told(tmp_path, "Which number has Ada Brandt in phones.txt?", READ_PHONES, "She has 301.")
    assert not {"write-file", "edit-file"} & (told.may_call(0) | told.may_call(1))


def test_a_question_that_names_no_file_begins_with_a_search(tmp_path: Path) -> None:
    told = Told(tmp_path, "Which number has Ada Brandt?", '(grep-search :pattern "Ada")', "She has 301.")
    assert "read-file" not in told.may_call(0)
    assert "grep-search" in told.may_call(0)
    assert told.may_answer(1)


def test_a_search_in_vain_goes_on_with_other_words_everywhere(tmp_path: Path) -> None:
    task = "Which crop does Brandt sell?"
    told = Told(tmp_path, task, '(grep-search :pattern "zebra" :path "stock.txt")', READ_PHONES, "None.")
    assert told.paths(1) == {"."}
    assert told.heard[1].endswith("Next: search for another word, such as brandt, crop, sell.")


def test_a_file_is_read_before_it_is_changed(tmp_path: Path) -> None:
    edit = '(edit-file :path "phones.txt" :old "522" :new "533")'
    told = Told(tmp_path, "In phones.txt, change 522 to 533.", READ_PHONES, edit, "Done.", consent=SayYes())
    assert told.may_call(0) == {"read-file"}
    assert told.may_call(1) == {"edit-file"}
    assert not told.may_answer(1)
    assert told.may_answer(2)
    assert "533" in (tmp_path / "phones.txt").read_text()


BOX = {"box.ini": "[web]\non = 1\n[index]\non = 1\n"}
READ_BOX, TURN_OFF = '(read-file :path "box.ini")', '(edit-file :path "box.ini" :old "on = 1" :new "on = 0")'


def test_a_text_that_is_there_twice_is_changed_at_a_place_that_the_model_chooses(tmp_path: Path) -> None:
    choice = r'(edit-file :path "box.ini" :edits [["[index]\non = 1" "[index]\non = 0"]])'
    task = "Turn the index off in box.ini (on = 0)."
    told = Told(files(tmp_path, BOX), task, READ_BOX, TURN_OFF, choice, "It is off.", consent=SayYes())
    assert told.heard[2].endswith("Next: choose the place for the change in box.ini.")
    assert [told.arguments(turn, "edit-file") for turn in (1, 2)] == [
        {"path", "old", "new"},
        {"path", "edits"},
    ]
    assert (tmp_path / "box.ini").read_text() == "[web]\non = 1\n[index]\non = 0\n"


def test_the_places_of_a_file_with_crlf_are_changed(tmp_path: Path) -> None:
    (tmp_path / "box.ini").write_bytes(b"[web]\r\non = 1\r\nx = 1\r\n[index]\r\non = 1\r\nx = 1\r\n")
    twice = r'(edit-file :path "box.ini" :old "on = 1\nx = 1" :new "on = 0\nx = 1")'
    task = "Turn the index off in box.ini (on = 0)."
    told = Told(tmp_path, task, READ_BOX, twice, "Off.", consent=SayYes())
    assert told.heard[2].endswith("Next: choose the place for the change in box.ini.")
    assert "[index]" in told.grammars[2]
    assert "on = 0" in told.grammars[2]


def test_a_change_that_fails_twice_is_told_and_the_file_is_not_written_anew(tmp_path: Path) -> None:
    wrong = '(edit-file :path "box.ini" :old "off" :new "on")'
    task = "Turn the index off in box.ini."
    said = ("It is off.", "It could not be done: no.")
    told = Told(files(tmp_path, BOX), task, READ_BOX, wrong, wrong, *said, consent=SayYes())
    assert not any("write-file" in told.may_call(turn) for turn in range(5))
    assert told.heard[4].startswith("Nothing was changed. Change it, or say that it is not done, and why.")
    assert told.reply.text == "It could not be done: no."


def test_what_is_added_goes_to_the_end_of_a_file(tmp_path: Path) -> None:
    add = '(edit-file :path "stock.txt" :new "plums 4")'
    told = Told(tmp_path, "Add plums 4 to stock.txt.", READ_STOCK, add, "Added.", consent=SayYes())
    assert told.heard[1].endswith("Next: add it at the end of stock.txt.")
    assert told.arguments(1, "edit-file") == {"path", "new"}
    assert (tmp_path / "stock.txt").read_text() == "apples 12\npears 30\nplums 4\n"


def test_each_file_that_is_to_be_written_is_written(tmp_path: Path) -> None:
    one, two = (f'(write-file :path "out/{name}.txt" :content "x")' for name in "ab")
    task = "Write x into out/a.txt and x into out/b.txt."
    told = Told(tmp_path, task, one, two, "Both are written.", consent=SayYes())
    assert [told.may_answer(turn) for turn in range(3)] == [False, False, True]
    assert told.heard[1].endswith("Next: write out/b.txt.")


def test_a_denied_change_is_not_asked_for_again(tmp_path: Path) -> None:
    edit = '(edit-file :path "phones.txt" :old "522" :new "533")'
    task = "In phones.txt, change 522 to 533."
    told = Told(tmp_path, task, READ_PHONES, edit, "You said no.", consent=SaysNo())
    assert told.may_answer(2)
    assert told.reply.text == "You said no."


def test_numbers_that_were_read_are_computed_with_a_program(tmp_path: Path) -> None:
    task = "What is the sum of the numbers in stock.txt?"
    told = Told(tmp_path, task, READ_STOCK, "(eval :form (+ 12 30))", "It is 42.")
    assert told.may_call(0) == {"read-file"}
    assert told.may_call(1) == {"eval"}
    assert not told.may_answer(1)
    assert told.reply.text == "It is 42."


def test_a_program_of_numbers_names_nothing_else(tmp_path: Path) -> None:
    """Small models called functions that do not exist, and the names of columns."""
    told = Told(
        tmp_path, "What is the sum of the numbers in stock.txt?", READ_STOCK, "(eval :form (+ 12 30))", "42."
    )
    assert ['call-eval ::= "(eval" " :form " sum ")"' in grammar for grammar in told.grammars] == [
        False,
        True,
        False,
    ]


def test_a_row_of_a_table_is_read_with_its_head(tmp_path: Path) -> None:
    search = '(grep-search :pattern "rake")'
    read = '(read-file :path "prices.csv")'
    (tmp_path / "prices.csv").write_text("item,price\nrake,17\n")
    told = Told(tmp_path, "What does a rake cost?", search, read, "It costs 17.")
    assert (told.may_call(1), told.paths(1)) == ({"read-file"}, {"prices.csv"})


def test_a_program_uses_each_number_of_an_expression(tmp_path: Path) -> None:
    one, other = "(eval :form (* 25 48))", "(eval :form (- (* 25 48) 36))"
    told = Told(tmp_path, "What is 25 * 48 - 36?", one, other, "It is 1164.")
    assert told.heard[1].endswith("Next: compute it again with eval, also with 36.")
    assert told.may_answer(2)


def test_two_programs_that_failed_are_enough(tmp_path: Path) -> None:
    wrong = ("(eval :form (expt 2 16))", "(eval :form (pow2 16))", READ_STOCK)
    told = Told(tmp_path, "What is 2 to the power of 16?", *wrong, "It is 65536.", "It is 65536.")
    assert [told.may_call(turn) == {"eval"} for turn in range(3)] == [True, True, False]
    assert told.may_answer(3)
    assert told.reply.text == "It is 65536."


@pytest.mark.parametrize(
    ("answer", "doubt"),
    [
        ("Paul has 999.", "No result contains 999. Look further, or compute it with eval."),
        ("They are clerks.", 'No result contains "clerks". Look further.'),
        ('Paul has the "red" phone.', 'No result contains "red". Look further.'),
        ("Paul leads it, as stock.txt says.", "You have not looked into stock.txt."),
    ],
)
def test_an_answer_that_nothing_has_shown_is_doubted_once(tmp_path: Path, answer: str, doubt: str) -> None:
    told = Told(tmp_path, "Who leads the team in team.org?", READ_TEAM, answer, answer)
    assert told.heard[2].startswith(doubt)
    assert (told.reply.text, told.reply.steps) == (answer, 3)


@pytest.mark.parametrize("answer", ["Paul Lindgren.", "It is Paul Lindgren, in team.org.", 'It is "Paul".'])
def test_an_answer_that_was_shown_is_not_doubted(tmp_path: Path, answer: str) -> None:
    assert Told(tmp_path, "Who leads the team in team.org?", READ_TEAM, answer).reply.steps == 2


@pytest.mark.parametrize(
    ("task", "calls", "answer", "doubt"),
    [
        (
            "Give me the number of Edda Roth from phones.txt.",
            (READ_PHONES,),
            "Edda Roth: 301",
            'No result contains "Edda Roth". If it is not there, say so.',
        ),
        (
            "Which row has plums in stock.txt?",
            ('(grep-search :pattern "plums" :path "stock.txt")', READ_STOCK),
            "Plums are in row 12.",
            'No result contains "plums". If it is not there, say so.',
        ),
        (
            "Which file has the pears?",
            ('(grep-search :pattern "pears")', READ_STOCK),
            "The pears are 30.",
            "The task asks for a file. Name it.",
        ),
        (
            "I must ring the lead in team.org. Their number is in phones.txt, what is it?",
            (READ_TEAM, READ_PHONES),
            "Paul Lindgren is the lead.",
            "The answer says nothing from phones.txt. Answer the whole task.",
        ),
    ],
)
def test_an_answer_beside_the_question_is_doubted(
    tmp_path: Path, task: str, calls: tuple[str, ...], answer: str, doubt: str
) -> None:
    told = Told(tmp_path, task, *calls, answer, answer)
    assert told.heard[-1].startswith(doubt)
    assert told.reply.text == answer


@pytest.mark.parametrize(
    ("task", "calls", "answer"),
    [
        ("Give me the number of Edda Roth from phones.txt.", (READ_PHONES,), "She is not in phones.txt."),
        ("Which file has the pears?", ('(grep-search :pattern "pears")',), "They are in stock.txt."),
        ("Who is in team.org, but not in phones.txt?", (READ_TEAM, READ_PHONES), "The Test lead."),
        ("Who is in team.org, and in phones.txt?", (READ_TEAM, READ_PHONES), "Paul has 522."),
    ],
)
def test_an_answer_to_the_question_is_not_doubted(
    tmp_path: Path, task: str, calls: tuple[str, ...], answer: str
) -> None:
    assert Told(tmp_path, task, *calls, answer).reply.steps == len(calls) + 1


DATES = {"rehearsals.txt": "2026-12-01 hall\n2026-12-08 church\n", "concert.txt": "Concert on 2026-12-12\n"}
READ_REHEARSALS, READ_CONCERT = (f'(read-file :path "{name}")' for name in DATES)


def test_days_are_counted_between_dates_that_were_read(tmp_path: Path) -> None:
    count = '(eval :form (days-between "2026-12-08" "2026-12-12"))'
    task = "How many days are between the last of rehearsals.txt and concert.txt?"
    told = Told(files(tmp_path, DATES), task, READ_REHEARSALS, READ_CONCERT, count, "There are 4.")
    assert told.may_call(2) == {"eval"}
    assert [
        pair for pair in PAIRS if f'days-between \\"{pair[0]}\\" \\"{pair[1]}\\"' in told.grammars[2]
    ] == PAIRS
    assert told.reply.calls[-1].result.value == 4


PAIRS = [("2026-12-01", "2026-12-08"), ("2026-12-01", "2026-12-12"), ("2026-12-08", "2026-12-12")]


def test_a_weekday_is_computed(tmp_path: Path) -> None:
    day = '(eval :form (weekday "2026-12-12"))'
    told = Told(files(tmp_path, DATES), "What weekday is concert.txt about?", READ_CONCERT, day, "Saturday.")
    assert told.may_call(1) == {"eval"}
    assert '(weekday \\"2026-12-12\\")' in told.grammars[1]
    assert (told.reply.calls[-1].result.value, told.reply.text) == ("Saturday", "Saturday.")


def test_dates_without_a_question_of_days_are_left_alone(tmp_path: Path) -> None:
    told = Told(files(tmp_path, DATES), "When is the concert in concert.txt?", READ_CONCERT, "On 2026-12-12.")
    assert told.may_answer(1)


def test_a_mean_has_a_form_of_its_own(tmp_path: Path) -> None:
    mean = "(eval :form (mean [12 30]))"
    told = Told(tmp_path, "What is the average in stock.txt?", READ_STOCK, mean, "It is 21.")
    assert told.heard[1].endswith("Next: compute it with eval, from these numbers, as (mean [1 2 3]).")
    assert told.reply.calls[-1].result.value == 21


def test_a_model_that_may_answer_at_once_has_no_steps(tmp_path: Path) -> None:
    """Strong models get no coach: the grammar alone decides who is small."""
    model = scripted("It is 999.")
    with Agent(workspace=files(tmp_path, PLACE), model=ModelOptions(model)) as agent:
        assert agent.run("What is the sum of the numbers in stock.txt?").text == "It is 999."


# What a task asks for


@pytest.mark.parametrize(
    ("task", "named", "only_asks", "computes"),
    [
        ("Which port is set in a/b.ini?", ("a/b.ini",), True, False),
        ("Is a.txt there? Then write it into b.txt.", ("a.txt", "b.txt"), False, False),
        ("What is the total in a.csv?", ("a.csv",), True, True),
        ("How many lines contain 2026-03-02?", (), True, False),
        ("What is 3 * 4?", (), True, True),
        ("Add the numbers in a.csv.", ("a.csv",), False, True),
        ("What is the difference between Python 2 and 3?", (), True, False),
        ("Raise the version from 2.3.1 to 2.4.0.", (), False, False),
        ("Can you sort a.txt?", ("a.txt",), False, False),
        (r"What is in C:\\a\\notes.txt?", (), True, False),
    ],
)
def test_what_a_task_asks_for(task: str, named: tuple[str, ...], only_asks: bool, computes: bool) -> None:
    asked = asked_by(task)
    assert (asked.files, asked.only_asks, asked.computes) == (named, only_asks, computes)


@pytest.mark.parametrize(
    "task", ["Hello!", "Add 3 and 4.", "Rewrite this politely: go away.", "Turn off the lights."]
)
def test_a_task_without_files_forces_no_change(tmp_path: Path, task: str) -> None:
    told = Told(tmp_path, task, READ_STOCK, "Fine.")
    assert told.may_answer(1)


def test_an_empty_file_was_looked_into(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("")
    told = Told(tmp_path, "What is in empty.txt?", '(read-file :path "empty.txt")', READ_STOCK, "Nothing.")
    assert told.paths(1) == set()


def test_long_numbers_are_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "pi.txt").write_text("3" * 5_000)
    told = Told(
        tmp_path,
        "What is the sum of the digits in pi.txt?",
        '(read-file :path "pi.txt")',
        "(eval :form (+ 1 2))",
        "3.",
    )
    assert told.reply.text == "3."


def test_the_number_of_a_line_does_not_count(tmp_path: Path) -> None:
    reply = Told(tmp_path, "Which number has Ada?", '(grep-search :pattern "Ada")', "She has 301.").reply
    assert numbers_shown("", reply.calls) == {1, 301}  # the list has one hit, of line 1


# Few tools


def opening(root: Path, task: str, **options: Any) -> tuple[list[str], str]:
    """The tools that a small model sees in full, and the line with the others."""
    model = scripted('(grep-search :pattern "x")', "Yes.", "Yes.", "Yes.")
    model.takes_grammar = True
    with Agent(workspace=files(root, PLACE), model=ModelOptions(model), **options) as agent:
        agent.run(task)
    text = model.seen[0].decode()
    return re.findall(r"\\n- ([\w-]+):", text), "".join(re.findall(r"Other tools: ([^\\]*)", text))


def test_a_small_model_sees_the_tools_that_fit_its_task(tmp_path: Path) -> None:
    full, rest = opening(tmp_path, "Which number has Ada?")
    assert full == ["eval", "grep-search", "list-files", "read-file"]
    assert "schedule-reminder" in rest
    assert "eval" not in rest
    full, rest = opening(tmp_path, "Set a reminder for tomorrow: call Ada.")
    assert "schedule-reminder" in full
    assert len(full) == 6


def test_the_full_belt_stays_for_who_wants_it(tmp_path: Path) -> None:
    full, rest = opening(tmp_path, "Which number has Ada?", tools=ToolOptions(belt="full"))
    assert len(full) > 10
    assert rest == ""


def test_a_next_task_adds_the_tools_that_fit_it(tmp_path: Path) -> None:
    model = scripted(
        '(grep-search :pattern "Ada")',
        "She has 301.",
        '(grep-search :pattern "x")',
        "Done.",
        "Done.",
        "Done.",
        "Done.",
    )
    model.takes_grammar = True
    with Agent(workspace=files(tmp_path, PLACE), model=ModelOptions(model)) as agent:
        agent.say("Which number has Ada?")
        agent.say("Set a reminder for tomorrow: call Ada.")
    added = model.seen[2].decode().partition("TOOLS: these fit the next task, too.")[2]
    assert re.findall(r"\\n- ([\w-]+):", added) == [
        "edit-file",
        "schedule-reminder",
        "write-file",
    ]


def test_no_step_forces_a_deed_where_nothing_that_looks_is_left(tmp_path: Path) -> None:
    shown = Told(tmp_path, "Hello!", READ_STOCK, "Hello.").may_call(1)
    for left in (["read-file", "send-message"], ["read-file", "shell"], ["list-files", "send-message"]):
        tools = ToolOptions(without={*shown, "write-file"} - {*left})
        told = Told(tmp_path, "Which number has Ada Brandt?", "Who?", "301.", tools=tools)
        assert told.may_call(0) == {left[0]}


def test_a_file_with_a_space_in_its_name_is_no_other_file(tmp_path: Path) -> None:
    files(tmp_path, {"notes.txt": "tea\n", "my notes.txt": "tea\n"})
    told = Told(tmp_path, 'What is in "my notes.txt"?', '(read-file :path "my notes.txt")', "Tea.")
    assert told.paths(0) == {"my notes.txt"}


@pytest.mark.parametrize("read", ['(read-file "phones.txt")', '(read-file :path "./phones.txt")'])
def test_a_read_counts_however_it_is_written(tmp_path: Path, read: str) -> None:
    told = Told(tmp_path, "What is the total in phones.txt and stock.txt?", read, READ_STOCK, "865.")
    assert told.paths(1) == {"stock.txt"}


@pytest.mark.parametrize(
    ("task", "text"),
    [
        ("How many days of leave has Ada in d.txt?", "Ada 25 days, here since 2019-01-01\nBob 2020-02-02\n"),
        ("Which day do we open early, according to d.txt?", "since 2026-02-28: early on Mondays\n"),
        ("What weekday is in d.txt?", "2026-02-30\n"),
    ],
)
def test_dates_that_are_not_asked_for_are_not_computed_with(tmp_path: Path, task: str, text: str) -> None:
    told = Told(files(tmp_path, {"d.txt": text}), task, '(read-file :path "d.txt")', "25.")
    assert told.may_answer(1)


def test_a_model_is_not_led_through_many_files(tmp_path: Path) -> None:
    names = [f"f{number}.txt" for number in range(20)]
    files(tmp_path, dict.fromkeys(names, "tea\n"))
    reads = [f'(read-file :path "{name}")' for name in names[:8]]
    told = Told(tmp_path, f"What do {', '.join(names)} have in common?", *reads, "Tea.")
    assert [told.may_answer(turn) for turn in range(9)] == [False] * 7 + [True] * 2


def test_after_a_doubt_a_model_may_say_that_a_change_was_not_made(tmp_path: Path) -> None:
    task = "In phones.txt, change 522 to 533."
    edit = '(edit-file :path "phones.txt" :old "523" :new "533")'
    replies = (READ_PHONES, edit, READ_TEAM, edit, READ_STOCK, "Done.", "Not done.")
    told = Told(tmp_path, task, *replies, consent=SayYes())
    assert "Nothing was changed. Change it, or say that it is not done, and why." in told.heard[-1]
    assert told.may_answer(len(told.heard) - 1)


def test_a_search_for_nothing_is_no_word_in_vain(tmp_path: Path) -> None:
    files(tmp_path, {"empty.txt": ""})
    search = '(grep-search :pattern "" :path "empty.txt")'
    told = Told(tmp_path, "What is in empty.txt?", search, "Quite empty.", "Nothing.")
    assert not [heard for heard in told.heard if 'contains ""' in heard]


def test_after_a_denial_nothing_is_forced(tmp_path: Path) -> None:
    write = '(write-file :path "note.txt" :content "hello")'
    told = Told(tmp_path, "Write hello into note.txt.", write, "It was denied.", consent=SaysNo())
    assert not told.may_answer(0)
    assert told.may_answer(1)


def test_no_tool_is_taken_for_an_editor_for_its_effects_alone(tmp_path: Path) -> None:
    def sync_repo(path: str) -> str:
        """Upload a file and delete it here."""
        return path

    tools = ToolOptions([tool("sync-repo", sync_repo, effects=["reads", "writes"])], without=["edit-file"])
    told = Told(tmp_path, "In phones.txt, change 522 to 533.", READ_PHONES, "I cannot.", "No.", tools=tools)
    assert told.may_answer(1)


@pytest.mark.parametrize(
    ("task", "answer"),
    [
        ("Is anything about wages in team.org?", "Nothing."),
        ("Which notes in team.org mention Ada?", "None."),
        ("In phones.txt, change 521 to 533.", "521 is not there."),
        ("In stock.txt, set the pears to 30.", "They are already at 30."),
    ],
)
def test_a_negative_answer_is_not_doubted(tmp_path: Path, task: str, answer: str) -> None:
    edit = '(edit-file :path "phones.txt" :old "521" :new "533")'
    looks = [READ_TEAM] if "team" in task else [READ_PHONES, edit, READ_TEAM, edit, READ_STOCK]
    told = Told(tmp_path, task, *looks, answer, "Doubted.", consent=SayYes())
    assert told.reply.text == answer


def test_a_file_is_not_another_whose_name_ends_alike(tmp_path: Path) -> None:
    files(tmp_path, {"my-phones.txt": "522\n"})
    edits = [f'(edit-file :path "{name}" :old "522" :new "533")' for name in ("my-phones.txt", "phones.txt")]
    read = '(read-file :path "my-phones.txt")'
    told = Told(
        tmp_path, "In phones.txt, change 522 to 533.", READ_PHONES, read, *edits, "Done.", consent=SayYes()
    )
    assert told.paths(4 - 1) == {"phones.txt"}
