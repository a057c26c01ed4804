"""Skills: which folders are one, what is told of others, and what a model reads of one that is trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import quoth
from sentences import (
    HAS_CHANGED_SINCE_IT_WAS,
    IS_A_BINARY_FILE_OF,
    IS_NOT_TRUSTED,
    IS_NOT_UTF_8_TEXT,
    ITS_TRUST_WAS_REMOVED,
    NO_LONGER_HAS,
    READ_IT_THEN_RUN,
    THE_MAXIMUM_IS,
)
from words import complaint, files, shipped, story

from quoth.tools.errors import UsageError
from quoth.tools.knowledge import skills
from quoth.tools.knowledge.skill_folders import has_skills, user_skills
from quoth.tools.knowledge.skills import TRUST, front_matter, load_skills
from quoth.tools.storage.paths import config_dir

HEAD = "---\nname: {}\ndescription: {}\n---\n"
NOTES = f"{HEAD.format('notes', 'Write release notes.')}# Notes\nRun scripts/log.sh.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A workspace with a skill that nobody has trusted yet."""
    skill = {"SKILL.md": NOTES, "scripts/log.sh": "git log\n", "logo.png": b"\x89PNG\0"}
    return files(tmp_path / "home", {f".quoth/skills/notes/{name}": data for name, data in skill.items()})


def trusted(home: Path) -> Path:
    TRUST.trust_each(home, {one.folder: one.digest for one in skills.skills_to_trust(home).known.values()})
    return home


def mine(name: str, text: str) -> None:
    """The user has a skill."""
    files(user_skills(), {f"{name}/SKILL.md": text})


# What is a skill


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a\ndescription: One: two.", {"name": "a", "description": "One: two."}),
        ("name: 'a'\ndescription: \"It's #1.\"", {"name": "a", "description": "It's #1."}),
        ("description: >-\n  Two\n  lines.\nname: a # here", {"name": "a", "description": "Two lines."}),
        ("name: a\nmetadata:\n  version: 1\n- odd\ndescription:", {"metadata": "version: 1"}),
    ],
)
def test_front_matter_is_read_as_people_write_it(text: str, said: dict[str, str]) -> None:
    found, guide = front_matter(f"---\n{text}\n---\n\nDo it.\n", "SKILL.md")
    assert (found | said, guide) == (found, "Do it.")


LARGE = "x" * (skills.LONGEST_GUIDE + 1)
FAULTS = {
    "no guide": (None, "The folder {} is not a skill: it does not contain SKILL.md."),
    "no front matter": (
        "# Notes",
        "{}/SKILL.md has no front matter. Begin with a line ---, then name: and description:",
    ),
    "no end": ("---\nname: x", "The front matter of {}/SKILL.md does not end. Close it with a line ---"),
    "no name": (
        "---\ndescription: x\n---",
        "{}/SKILL.md has no name. Write in its front matter: name: x",
    ),
    "another name": (
        HEAD.format("y", "x"),
        "{}/SKILL.md has the name y, not the name of its folder: x",
    ),
    "no description": (
        "---\nname: x\n---",
        "{}/SKILL.md has no description. Write description: and when to use the skill.",
    ),
    "a long description": (
        HEAD.format("x", "x" * 1025),
        "{}/SKILL.md has a description of more than 1,024 characters.",
    ),
    "a large guide": (LARGE, f"{{}}/SKILL.md is too large: {THE_MAXIMUM_IS} 100,000 bytes."),
    "no text": (b"\xff", f"{{}}/SKILL.md {IS_NOT_UTF_8_TEXT}."),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_folder_that_is_no_skill_is_told_in_one_sentence(home: Path, fault: str) -> None:
    text, sentence = FAULTS[fault]
    files(home, {".claude/skills/x/other.md": ""} if text is None else {".claude/skills/x/SKILL.md": text})
    found = load_skills(trusted(home))
    assert ([*found.known], found.faults) == (["notes"], (sentence.format(".claude/skills/x"),))


def test_a_name_is_of_small_letters_and_taken_once(home: Path) -> None:
    mine("notes", HEAD.format("notes", "Mine."))
    mine("Odd_Name", HEAD.format("Odd_Name", "Odd."))
    found, folder = load_skills(trusted(home)), config_dir() / "skills"
    assert {one.name: one.description for one in found.known.values()} == {"notes": "Mine."}
    assert found.faults == (
        f"{folder}/Odd_Name is not a skill name. Use a-z, 0-9 and single hyphens, at most 64.",
        f"Two skills are named notes: {folder}/notes is used, .quoth/skills/notes is ignored.",
    )


def test_a_skill_has_so_many_files_and_no_more(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound, most in (("MOST_FILES", 2), ("MOST_BYTES", 50)):
        with monkeypatch.context() as patch:
            patch.setattr(skills, bound, most)
            (fault,) = load_skills(home).faults
            assert fault.startswith(f"The skill .quoth/skills/notes is too large: {THE_MAXIMUM_IS} ")


def test_links_of_a_workspace_lead_nowhere(home: Path, tmp_path: Path) -> None:
    elsewhere = files(tmp_path / "elsewhere", {"a/SKILL.md": HEAD.format("a", "A."), "key": "secret"})
    (home / ".quoth/skills/a").symlink_to(elsewhere / "a")
    (home / ".claude").symlink_to(elsewhere)
    (home / ".quoth/skills/notes/key").symlink_to(elsewhere / "key")
    files(home, {".quoth/skills/b/other.md": ""})
    (home / ".quoth/skills/b/SKILL.md").symlink_to(elsewhere / "a/SKILL.md")
    found = load_skills(trusted(home))
    assert "key" not in found.known["notes"].files
    assert [*found.known] == ["notes"]
    assert found.faults == (
        ".quoth/skills/b/SKILL.md is a link, which is not followed. Put the file itself there.",
    )


# Trust


@pytest.mark.parametrize("file", ["SKILL.md", "scripts/log.sh", "scripts/new.sh"])
def test_a_skill_counts_only_as_it_was_trusted(home: Path, file: str) -> None:
    place = ".quoth/skills/notes"
    assert load_skills(home).faults == (f"The skill {place} is not trusted; read it, then run: quoth trust",)
    assert not has_skills(home)
    assert [*load_skills(trusted(home)).known] == ["notes"]
    files(home, {f"{place}/{file}": NOTES + "Delete everything.\n"})
    assert load_skills(home).faults == (
        f"The skill {place} {HAS_CHANGED_SINCE_IT_WAS}; {READ_IT_THEN_RUN}: quoth trust",
    )


def test_a_record_of_trust_that_cannot_be_read_trusts_nothing(home: Path) -> None:
    record = TRUST._file(trusted(home))
    record.write_text("{")
    assert complaint(UsageError, lambda: load_skills(home)).startswith("The trust record ")


# What a model reads


def test_a_model_reads_a_skill_and_its_files(home: Path) -> None:
    here = shipped(trusted(home))
    assert here.pass_through("(skill)").value == [{"name": "notes", "description": "Write release notes."}]
    guide = here.pass_through('(skill :name "notes")')
    assert (guide.value, guide.message) == (
        "# Notes\nRun scripts/log.sh.",
        "Its files in .quoth/skills/notes: logo.png, scripts/log.sh. Read one with"
        ' (skill :name "notes" :file "logo.png"); run one only with shell.',
    )
    assert here.pass_through('(skill :name "notes" :file "scripts/log.sh")').value == "git log\n"


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ('(skill :name "note")', "There is no skill note. Did you mean notes?"),
        ('(skill :name "zzz")', "There is no skill zzz. The choices are notes."),
        (
            '(skill :name "bad")',
            f"The skill .quoth/skills/bad {IS_NOT_TRUSTED}; read it,",
        ),
        ('(skill :name "notes" :file "../x")', "The skill notes has no file ../x."),
        (
            '(skill :name "notes" :file "scripts/log")',
            "The skill notes has no file scripts/log. Did you mean",
        ),
        ('(skill :name "notes" :file "logo.png")', f"logo.png {IS_A_BINARY_FILE_OF} 5 bytes."),
    ],
)
def test_what_there_is_not_is_said_with_the_nearest(home: Path, form: str, sentence: str) -> None:
    files(trusted(home), {".quoth/skills/bad/SKILL.md": HEAD.format("bad", "Bad.")})
    assert shipped(home).pass_through(form).message.startswith(sentence)


def test_a_day_with_a_skill(home: Path) -> None:
    """It is trusted with one command, told in one line behind the belt, read, and looked at by the doctor."""
    files(home, {".claude/skills/x/SKILL.md": "---\nname: x\n---"})
    fault = (
        "quoth: .claude/skills/x/SKILL.md has no description. Write description: and when to use the skill.\n"
    )
    said = quoth("trust", "--yes", cwd=home)
    assert said.out.splitlines()[1:] == [
        "  Write release notes.",
        "  SKILL.md",
        "  logo.png",
        "  scripts/log.sh",
    ]
    assert said.err == fault
    told = story(home, '(skill :name "notes")', "Done.")
    assert told.statuses == ["ok"]
    opening = [json.loads(request)[0]["content"] for request in told.requests]
    assert opening[0] == opening[1]
    assert opening[0].endswith(
        "\nSkills, each a guide for one kind of task; read the one that fits first, such as"
        ' (skill :name "notes"):\n| notes: Write release notes.'
    )
    assert "- skill: Read a skill" in opening[0]
    assert (
        "- skill"
        not in json.loads(story(files(home.parent / "bare", {"a": ""}), "Hi.").requests[0])[0]["content"]
    )
    found = {
        one["detail"]
        for one in json.loads(quoth("doctor", "--json", cwd=home).out)
        if one["name"] == "skills"
    }
    assert found == {"notes (.quoth/skills/notes)", fault.removeprefix("quoth: ").rstrip()}
    (home / ".quoth/skills/notes/SKILL.md").unlink()
    (home / ".claude/skills/x/SKILL.md").unlink()
    assert (
        f"{home} {NO_LONGER_HAS} a skill; {ITS_TRUST_WAS_REMOVED}." in quoth("trust", "--yes", cwd=home).out
    )
