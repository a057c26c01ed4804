"""No spelling of an address gets a denied page, also not by a redirect, however a server reads addresses."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import quote, unquote

import pytest
from fetching import fetched
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from loopback import Handler, Server, loopback

Reading = Callable[[str], str]  # the file that a server gives for a path


def plain(path: str) -> str:
    """As http.server, nginx and Apache do: escapes decoded, empty segments left out, dots resolved."""
    kept: list[str] = []
    for part in unquote(path).split("/"):
        if part == ".." and kept:
            kept.pop()
        elif part not in ("", ".", ".."):
            kept.append(part)
    return "/".join(kept)


def without_parameters(path: str) -> str:
    """As Tomcat and Jetty do."""
    return plain("/".join(part.partition(";")[0] for part in path.split("/")))


def on_windows(path: str) -> str:
    """As IIS does: backslashes are slashes, case and a last dot or blank say nothing."""
    parts = plain(unquote(path).replace("\\", "/")).split("/")
    return "/".join(part.rstrip(". ") for part in parts).lower()


def decoded_twice(path: str) -> str:
    """As behind a proxy that decodes, too."""
    return plain(unquote(path))


def best_fit(path: str) -> str:
    """As systems do that look for the nearest letter."""
    return plain(unicodedata.normalize("NFKC", unquote(path)))


READINGS: list[Reading] = [plain, without_parameters, on_windows, decoded_twice, best_fit]
DENIED = "drafts/x"
RULES = '(allow (fetch :url (host "localhost"))) (deny (fetch :url {}))'


def served(reading: Reading) -> Callable[[Handler], None]:
    """Answers with the denied page, with another, or with a redirect to what stands behind ``/go?``."""

    def answer(handler: Handler) -> None:
        path, _, query = handler.path.partition("?")
        if path == "/go":
            handler.send(302, b"", location=query)
        else:
            found = reading(path) == DENIED
            handler.send(200, b"SECRET" if found else b"open", kind="text/plain")

    return answer


@pytest.fixture(scope="module")
def places() -> Iterator[list[Server]]:
    """A server for each reading."""
    with (
        loopback(served(READINGS[0])) as a,
        loopback(served(READINGS[1])) as b,
        loopback(served(READINGS[2])) as c,
        loopback(served(READINGS[3])) as d,
        loopback(served(READINGS[4])) as e,
    ):
        yield [a, b, c, d, e]


def gives(server: Server, path: str, predicate: str, *, led: bool = False) -> str:
    """What a model gets that asks for a path, or for a page that leads on to it, under a deny."""
    here = f"http://localhost:{server.server_address[1]}"
    result = fetched(
        f"{here}/go?{path}" if led else f"{here}{path}", RULES.format(predicate.format(here=here))
    )
    return f"{result.value} {result.message}"


# Each denies the page that is served as drafts/x
PREDICATES = [
    '(path (under "/drafts"))',
    '(path "/drafts/x")',
    '(path (matches "^/drafts/"))',
    '"{here}/drafts/x"',
    '(matches "/drafts/x$")',
]
SPELLED = [
    ("/drafts/x", 0), ("//drafts/x", 0), ("/drafts//x", 0), ("/a/..//drafts/x", 0), ("/./drafts/x", 0),
    ("/%64rafts/x", 0), ("/drafts%2Fx", 0), ("/drafts/%78", 0), ("/a/%2e%2e/drafts/x", 0),
    ("/a%2f..%2fdrafts/x", 0), ("/drafts/./x", 0), ("/drafts/x/", 0), ("/drafts/a/../x", 0),
    ("/drafts;v=1/x", 1), ("/drafts/x;v=1", 1), ("/;a/drafts/x", 1), ("/a/..;/drafts/x", 0),
    ("/DRAFTS/x", 2), ("/Drafts/X", 2), ("/drafts./x", 2), ("/drafts%20/x", 2), ("/a%5c..%5cdrafts/x", 2),
    ("/%5cdrafts/x", 2), ("/%2564rafts/x", 3), ("/drafts%252fx", 3), ("/a/%252e%252e/drafts/x", 3),
    ("/%ef%bd%84rafts/x", 4), ("/dra%ef%ac%80ts/x", 4), ("/drafts/%e2%93%a7", 4),
]  # fmt: skip


@pytest.mark.parametrize(("path", "reading"), SPELLED)
def test_no_spelling_gets_a_denied_page(places: list[Server], path: str, reading: int) -> None:
    for predicate in PREDICATES:
        for led in (False, True):
            assert "SECRET" not in gives(places[reading], path, predicate, led=led), (predicate, led)


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize(
    "path", ["/draft/x", "/drafts-2/x", "/a/x", "/a%20b", "/%C3%A9t%C3%A9", "/a/?b=/drafts/x"]
)
def test_other_pages_are_fetched(places: list[Server], path: str, predicate: str) -> None:
    if "?" in path and "matches" in predicate and "path" not in predicate:
        return
    assert "open" in gives(places[0], path, predicate)


SEGMENTS = st.sampled_from(
    [
        *("drafts", "x", "a", "", ".", "..", "%2e%2e", "..;", "%64rafts", "%2564rafts", "DRAFTS", "X"),
        *("drafts;v=1", "x;v", ";", "drafts.", "x%20", "drafts%2fx", "a%2f..%2fdrafts", "a%5c..%5cdrafts"),
        *(quote(text) for text in ("\uff44rafts", "dra\ufb00ts", "\u24e7", "dr\u00adafts")),
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@example(["a", "..", "", "drafts", "x"], 0, 0, True)
@given(
    st.lists(SEGMENTS, min_size=1, max_size=5),
    st.integers(0, len(READINGS) - 1),
    st.integers(0, len(PREDICATES) - 1),
    st.booleans(),
)
def test_no_generated_spelling_gets_a_denied_page(
    places: list[Server], segments: list[str], reading: int, predicate: int, led: bool
) -> None:
    path = "/" + "/".join(segments)
    assert "SECRET" not in gives(places[reading], path, PREDICATES[predicate], led=led)
