"""What one call may do with the files and addresses that it comes upon, by the rules of other tools too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from words import files, form, tool

from quoth.tools.call.call import new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy, Walk
from quoth.tools.policy.urls import may_reach, read_pattern
from quoth.tools.registry.param_types import WorkspacePath

PATH = {"path": {"type": WorkspacePath, "default": "."}, "pattern": {"type": str, "default": ""}}
SEARCH, READ, LIST = (tool(name, params=PATH, effects=["reads"]) for name in ("search", "read", "list"))


def rules(text: str) -> RulesPolicy:
    return RulesPolicy([parse_layer("user", text.encode(), "p.hy")])


def walk(text: str, folder: Path, path: str = ".", reader: Any = READ, lister: Any = LIST) -> Walk:
    call = new_call(form(f'(search :path "{path}" :pattern "x")'))
    args = {"path": WorkspacePath(path), "pattern": "x"}
    return Walk(rules(text), SEARCH, call, args, Workspace(folder), reader, lister)


@pytest.mark.parametrize(
    ("text", "may"),
    [
        ("", "list read look"),
        ('(deny (search :path "a"))', ""),
        ('(ask (search :path "a"))', ""),
        ('(deny (search :path "b"))', "list read look"),
        ('(deny (read :path "a"))', "list"),
        ('(deny (list :path "a"))', "list read"),
        ('(deny (_ :path "a"))', ""),
        ("(deny (read))", "list"),
        ("(deny (list))", "list read"),
        ('(deny (read :pattern "x"))', "list read look"),  # another tool has no such argument here
        ('(deny (read :path "a")) (allow (search))', "list"),
        ('(allow (read :path "a"))', "list read look"),
    ],
)
def test_a_file_is_named_read_and_looked_at_by_the_rules_of_each(text: str, may: str, tmp_path: Path) -> None:
    files(tmp_path, {"a": "", "b": ""})
    found = walk(text, tmp_path)
    asked = {"list": found.may_list, "read": found.may_read, "look": found.may_look}
    assert " ".join(name for name, ask in asked.items() if ask("a")) == may


def test_what_a_person_was_asked_about_is_not_asked_again_and_gives_no_more(tmp_path: Path) -> None:
    files(tmp_path, {"a": "", "b": ""})
    found = walk('(ask (search :path (under ".")))', tmp_path)
    assert (found.may_list("a"), found.may_read("a"), found.may_look("a")) == (True, True, False)


def test_without_a_reader_or_with_itself_only_its_own_rules_count(tmp_path: Path) -> None:
    files(tmp_path, {"a": ""})
    for reader, lister in ((None, None), (SEARCH, SEARCH)):
        found = walk('(deny (read :path "a")) (deny (list :path "a"))', tmp_path, ".", reader, lister)
        assert found.may_look("a")


# Addresses

FETCH = tool("fetch", params={"url": {"type": str}}, effects=["net"])


@pytest.mark.parametrize(
    ("text", "url", "address", "may"),
    [
        ("", "http://x.example/", "10.0.0.1", False),
        ('(allow (fetch :url (host "10.0.0.0/8")))', "http://x.example/", "10.0.0.1", True),
        ('(allow (fetch :url (host "10.0.0.0/8")))', "http://x.example/", "11.0.0.1", False),
        ('(allow (fetch :url (host "10.0.0.1")))', "http://x.example/", "10.0.0.1", True),
        ('(allow (fetch :url (host "x.example")))', "http://x.example/", "10.0.0.1", False),
        ('(allow (fetch :url (host "*.example" "10.0.0.1")))', "http://x.example/", "10.0.0.1", True),
        (
            '(allow (fetch :url (host "10.0.0.1"))) (deny (fetch :url (host "10.0.0.0/8")))',
            "http://x.example/",
            "10.0.0.1",
            False,
        ),
        ('(allow (fetch :url (host "localhost")))', "http://localhost/", "127.0.0.1", True),
        ('(allow (fetch :url (host "localhost")))', "http://localhost/", "10.0.0.1", False),
        ('(allow (fetch :url (host "localhost")))', "http://x.example/", "127.0.0.1", False),
        ('(allow (fetch :url (host "*.localhost")))', "http://a.localhost/", "127.0.0.1", False),
        ('(allow (fetch :url (host "a.localhost")))', "http://a.localhost/", "127.0.0.1", True),
        ('(allow (fetch :url (host "localhost:81")))', "http://localhost/", "127.0.0.1", False),
        (
            '(allow (fetch :url (and (host "10.0.0.1") (scheme "https"))))',
            "http://x.example/",
            "10.0.0.1",
            False,
        ),
        ('(allow (fetch :url (host "10.0.0.1")))', "x.example", "10.0.0.1", False),
        ("(allow (fetch))", "http://x.example/", "10.0.0.1", False),
    ],
)
def test_only_a_rule_that_names_an_address_of_the_own_network_leads_there(
    text: str, url: str, address: str, may: bool, tmp_path: Path
) -> None:
    call = new_call(form(f'(fetch :url "{url}")'))
    assert may_reach(rules(text), FETCH, call, {"url": url}, Workspace(tmp_path), address) == may


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("example.org", ("example.org", False, None, 0)),
        ("*.example.org:81", ("example.org", True, None, 81)),
        ("example.org:1", ("example.org", False, None, 1)),
        ("example.org:65535", ("example.org", False, None, 65_535)),
        ("10.0.0.1:80", ("10.0.0.1", False, "10.0.0.1/32", 80)),
        ("[::1]", ("::1", False, "::1/128", 0)),
        ("::1", ("::1", False, "::1/128", 0)),
        ("[fd00::]/8", ("", False, "fd00::/8", 0)),
    ],
)
def test_a_pattern_of_hosts_has_its_parts(text: str, pattern: tuple[Any, ...]) -> None:
    found = read_pattern(text)
    network = None if found.network is None else str(found.network)
    assert (found.host, found.below, network, found.port) == pattern


@pytest.mark.parametrize(
    "text", ["example.org:0", "example.org:65536", "example.org:٣", "10.0.0.1/33", "a:b"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(Exception, match=r"is (?:not a|neither a network nor a) host; a host is "):
        read_pattern(text)


def test_a_call_is_judged_by_its_own_tool_after_another_of_its_name(tmp_path: Path) -> None:
    policy = rules("(allow (look :x 1))")
    one, other = (tool("look", params={"x": {"type": int}}, effects=[what]) for what in ("writes", "net"))
    context = ToolContext(Workspace(tmp_path))
    for made, x in ((one, 1), (other, 1), (one, 2)):
        call = new_call(form(f"(look :x {x})"))
        said = policy.judge(made, call, {"x": x}, context)
        assert said.kind == ("allow" if x == 1 else "ask")
    asked = [policy.judge(made, new_call(form("(look :x 2)")), {"x": 2}, context) for made in (one, other)]
    assert asked[0].reason != asked[1].reason
