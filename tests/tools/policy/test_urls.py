"""Rules about addresses of the web: what host, scheme and path hold of, and what is no such predicate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import IS_EMPTY_WRITE_AT_LEAST, THERE_IS_NO_PREDICATE
from words import complaint, form, table_of, tool

from quoth.tools.call.call import new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import UsageError
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.language import read_orders
from quoth.tools.policy.lint import check
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.policy.predicates import Truth
from quoth.tools.policy.scope import left_open, suggested


def says(predicate: str, url: str) -> Truth:
    """What a predicate says of an address."""
    (rule,) = read_orders(f"(deny (fetch :url {predicate}))", "p.hy").rules
    nothing: Any = SimpleNamespace(seconds_left=lambda: 1.0)
    return rule.test({"url": url}, nothing)


@pytest.mark.parametrize(
    ("predicate", "url", "truth"),
    [
        ('(host "example.org")', "https://example.org/", True),
        ('(host "Example.ORG.")', "http://EXAMPLE.org.:8080/a", True),
        ('(host "example.org")', "https://www.example.org/", False),
        ('(host "example.org")', "https://example.org.evil.net/", False),
        ('(host "example.org")', "https://evilexample.org/", False),
        ('(host "*.example.org")', "https://a.b.example.org/", True),
        ('(host "*.example.org")', "https://example.org/", False),
        ('(host "*.example.org")', "https://evilexample.org/", False),
        ('(host "example.org" "*.example.org")', "https://example.org/", True),
        ('(host "example.org:8443")', "https://example.org:8443/", True),
        ('(host "example.org:8443")', "https://example.org/", False),
        ('(host "example.org:443")', "https://example.org/", True),
        ('(host "münchen.example")', "https://xn--mnchen-3ya.example/", True),
        ('(host "xn--mnchen-3ya.example")', "https://MÜNCHEN.example/", None),
        ('(host "10.0.0.0/8")', "http://10.1.2.3/", True),
        ('(host "10.0.0.0/8")', "http://11.1.2.3/", False),
        ('(host "10.0.0.0/8")', "http://example.org/", False),
        ('(host "[::1]:80")', "http://[0:0::1]/", True),
        ('(host "::1")', "http://[::1]:81/", True),
        ('(host "fd00::/8")', "http://[fd00::1]/", True),
        ('(host "example.org")', "https://example.org@evil.net/", None),
        ('(host "example.org")', "https://evil.net\\\\@example.org/", None),
        ('(host "example.org")', "example.org", None),
        ('(host "example.org")', "ftp://example.org", None),
        ('(not (host "example.org"))', "https://example.org@evil.net/", None),
        ('(scheme "https")', "HTTPS://example.org", True),
        ('(scheme "https")', "http://example.org", False),
        ('(scheme "http" "https")', "http://example.org", True),
        ('(path "/a")', "https://example.org/a?x#y", True),
        ('(path "/")', "https://example.org", True),
        ('(path "/a b")', "https://example.org/a%20b", True),
        ('(path (under "/docs"))', "https://example.org/docs", True),
        ('(path (under "/docs"))', "https://example.org/docs/a/../b", True),
        ('(path (under "/docs/"))', "https://example.org/docs/a", True),
        ('(path (under "/docs"))', "https://example.org/docsx", False),
        ('(path (under "/docs"))', "https://example.org/docs/../admin", False),
        ('(path (under "/docs"))', "https://example.org/docs/%2e%2e/admin", False),
        ('(path (under "/docs"))', "https://example.org/docs/..%2fadmin", None),
        ('(path (under "/docs"))', "https://example.org/docs/..%5cadmin", None),
        ('(path (under "/docs"))', "https://example.org/docs/..;x/admin", None),
        ('(path (under "/docs"))', "https://example.org/docs/%00", None),
        ('(path (matches "[.]pdf$"))', "https://example.org/a.pdf?x=1", True),
        ('(path (not (under "/docs")))', "https://example.org/a", True),
        ('(and (host "example.org") (path (under "/docs")))', "https://example.org/docs/x", True),
        ('(and (host "example.org") (path (under "/docs")))', "https://example.net/docs/x", False),
    ],
)
def test_what_holds_of_an_address(predicate: str, url: str, truth: Truth) -> None:
    assert says(predicate, url.replace("\\\\", "\\")) is truth


HOSTS = 'a host is "example.org", "*.example.org" for its subdomains, "localhost:8000", or "10.0.0.0/8".'


@pytest.mark.parametrize(
    ("predicate", "sentence"),
    [
        ("(host)", f"(host{IS_EMPTY_WRITE_AT_LEAST}."),
        ("(host 3)", 'a host must be a text, written "x", not 3.'),
        ('(host "https://example.org")', f"https://example.org is not a host; {HOSTS}"),
        ('(host "*")', f"* is not a host; {HOSTS}"),
        ('(host "exa*.org")', f"exa*.org is not a host; {HOSTS}"),
        ('(host "127.1")', f"127.1 is not a host; {HOSTS}"),
        ('(host "example.org:http")', f"example.org:http is not a host; {HOSTS}"),
        ('(host "example.org/docs")', f"example.org/docs is neither a network nor a host; {HOSTS}"),
        ('(host "10.0.0.1/8")', f"10.0.0.1/8 is neither a network nor a host; {HOSTS}"),
        ('(scheme "ftp")', 'A scheme must be "https" or "http", not "ftp".'),
        ('(path (host "a"))', "(host …) is about an address, and this is only its path."),
        ('(path (under "docs"))', 'The path of a page begins with a slash: (under "/docs").'),
        ("(path)", '(path …) takes one predicate, as in (path (under "/docs")).'),
        ('(hosts "example.org")', f"{THERE_IS_NO_PREDICATE} hosts. Did you mean host?"),
    ],
)
def test_what_is_no_predicate_of_addresses(predicate: str, sentence: str) -> None:
    said = complaint(UsageError, lambda: read_orders(f"(allow (fetch :url {predicate}))", "p.hy"))
    assert said.splitlines()[0].partition(": ")[2] == sentence


PAGE = tool("page", params={"url": {}, "as": {"default": "text"}}, effects=["net"])


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/secret",
        "HTTPS://example.org/secret",
        "https://EXAMPLE.org:443/secret",
        "https://example.org./%73ecret",
        "https://example.org/a/../secret",
        "https://example.org/./secret#x",
    ],
)
@pytest.mark.parametrize("predicate", ['"https://example.org/secret"', r'(matches "example\\.org/secret$")'])
def test_a_deny_finds_an_address_by_each_spelling(url: str, predicate: str) -> None:
    assert verdict(f"(allow (page)) (deny (page :url {predicate}))", url) == "deny"
    assert verdict(f"(allow (page)) (deny (page :url {predicate}))", "https://example.org/public") == "allow"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("//drafts/x", "ask"),
        ("/a/..//drafts", "ask"),
        ("/drafts;v=1/x", "ask"),
        ("/%64rafts/x", "allow"),
        ("/./drafts", "allow"),
        ("/drafts%2Fx", "ask"),
        ("/a//../drafts/x", "ask"),
        ("/%2564rafts/x", "ask"),
        ("/drafts/100%25", "allow"),
    ],
)
def test_no_spelling_of_a_path_passes_a_deny(path: str, allowed: str) -> None:
    rules = '(allow (page)) (deny (page :url (path (under "/drafts"))))'
    assert verdict(rules, f"https://example.org{path}") == "deny"
    assert verdict('(allow (page :url (path (under "/drafts"))))', f"https://example.org{path}") == allowed


SLASHES, DOTS = st.sampled_from(["/", "//", "/./", "/x/../"]), st.sampled_from(["", ";a", ";a=1"])
LETTERS = st.lists(st.booleans(), min_size=6, max_size=6)


@given(SLASHES, LETTERS, DOTS, SLASHES)
def test_no_generated_spelling_of_a_path_passes_a_deny(
    before: str, escaped: list[bool], parameters: str, behind: str
) -> None:
    word = "".join(
        f"%{ord(letter):x}" if hide else letter for letter, hide in zip("drafts", escaped, strict=True)
    )
    url = f"https://example.org{before}{word}{parameters}{behind}x"
    assert verdict('(allow (page)) (deny (page :url (path (under "/drafts"))))', url) == "deny"


def verdict(rules: str, url: str) -> str:
    """What the rules say of getting the page."""
    policy = RulesPolicy([parse_layer("given", rules.encode(), "p.hy")])
    call = new_call(form(f'(page :url "{url}")'))
    return str(policy.judge(PAGE, call, {"url": url, "as": "text"}, ToolContext(Workspace("/nowhere"))).kind)


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (r'(allow (page :url (matches "docs.python.org")))', "name the server"),
        (r'(allow (page :url (matches "^https://docs\\.python\\.org")))', "name the server"),
        (r'(allow (page :url (matches "^https://docs\\.python\\.org/")))', ""),
        (r'(allow (page :url (matches "^https?://(www\\.)?python\\.org/")))', ""),
        (r'(allow (page :url (matches "^https://docs.python.org/")))', "name the server"),
        (r'(allow (page :url (matches "^https://.*\\.python\\.org/")))', "name the server"),
        (r'(allow (page :url (matches "^https://[^/]*\\.python\\.org/")))', "name the server"),
        ('(deny (page :url "//docs.python.org/3/"))', 'write (host "docs.python.org")'),
        (r'(deny (page :url (matches "docs.python.org")))', ""),
        ('(deny (page :url "docs.python.org"))', 'write (host "docs.python.org")'),
        ('(allow (page :url "docs.python.org/3/"))', 'write (host "docs.python.org")'),
        ('(deny (page :url (one-of "*.example.org")))', 'write (host "*.example.org")'),
        ('(deny (page :url "https://example.org/x"))', ""),
        ('(deny (any-tool :url "example.org"))', 'write (host "example.org")'),
    ],
)
def test_a_rule_that_holds_less_or_allows_more_than_it_seems_is_found(rule: str, found: str) -> None:
    findings = check(RulesPolicy([parse_layer("given", rule.encode(), "p.hy")]), table_of(PAGE))
    assert bool(findings) == bool(found)
    assert all(found in finding.message for finding in findings)


@pytest.mark.parametrize(
    ("url", "clause", "leaves"),
    [
        (
            "https://Example.org/a?b",
            '(and (scheme "https") (host "example.org"))',
            "every page of example.org",
        ),
        ("http://localhost:80/a", '(and (scheme "http") (host "localhost"))', "every page of localhost"),
        ("http://[::1]:8000/", '(and (scheme "http") (host "[::1]:8000"))', "every page of [::1]:8000"),
        ("example.org", '"example.org"', ""),
    ],
)
def test_the_rule_that_is_offered_is_for_the_server(url: str, clause: str, leaves: str) -> None:
    rule = suggested(PAGE, form(f'(page :url "{url}")'))
    assert rule == f"(allow (page :url {clause} :only))"
    assert left_open(rule) == (f"It leaves {leaves} open." if leaves else "")
