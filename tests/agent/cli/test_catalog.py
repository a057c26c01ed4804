"""``quoth catalog``: tools are published, looked at and compared, and a change is seen by who watches."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import pytest
from sentences import (
    A_PASSWORD_ON_THE_COMMAND,
    AND_THE_KEY_HERE_IS,
    CANNOT_BE_USED,
    CREATED_THE_KEY,
    IN_REDIS_WAS_REFUSED,
    IT_IS_SIGNED_WITH_THE,
    IT_REFUSES_THE_CONNECTION,
    NO_SERVER_ANSWERS_THERE,
    THE_CATALOG_V,
    THE_REDIS_AT,
    THERE_IS_NO_FILE,
    THERE_IS_NO_KEY_AT,
    THERE_IS_NO_TOOL_NAMED,
)
from servers import pretended_redis
from words import Said, files, quoth, started

NUMBERS = itertools.count()
SHOP = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool count-fruit
  "Count a fruit. All of it."
  :parameters [fruit {:type str :doc "Which fruit"}]
  :effects [:reads]
  :body 30)
"""
MORE = SHOP.replace("fruit {:type", "kind {:type").replace("30", "31")


class Shop:
    """A folder with shop.hy, and a prefix in Redis of its own."""

    def __init__(self, folder: Path, url: str, *, key: bool = True) -> None:
        self.folder = folder
        self.words = ["--redis", url, "--prefix", f"shop-{next(NUMBERS)}"]
        files(folder, {"shop.hy": SHOP})
        if key:
            assert quoth("catalog", "key", "new", cwd=folder).code == 0

    def catalog(self, *words: str) -> Said:
        return quoth("catalog", *words, *self.words, cwd=self.folder)

    @property
    def prefix(self) -> str:
        return self.words[-1]


@pytest.fixture
def shop(tmp_path: Path, redis: str) -> Shop:
    return Shop(tmp_path, redis)


def test_it_is_published_and_shown(shop: Shop, redis: str) -> None:
    assert shop.catalog("show") == Said(
        1, "", f"quoth: No catalog of {shop.prefix} is published at {redis}.\n"
    )
    assert (
        shop.catalog("publish", "--tools", "shop.hy").out == f"Published v1 of {shop.prefix}: count-fruit.\n"
    )
    first, digest, *rest = shop.catalog("show").out.splitlines()
    assert re.fullmatch(rf"v1 of {shop.prefix} at {redis}, signed with the key [0-9a-f]{{8}}", first)
    assert re.fullmatch("hash [0-9a-f]{64}", digest)
    assert rest == ["count-fruit  Count a fruit.", "             (count-fruit :fruit str)"]
    assert shop.catalog("show", "count-fruit").out.startswith(
        "(count-fruit :fruit str)\nCount a fruit. All of it.\n"
    )
    assert shop.catalog("show", "count-frut").err == (
        f"quoth: {THERE_IS_NO_TOOL_NAMED} count-frut. Did you mean count-fruit?\n"
    )
    told = json.loads(shop.catalog("show", "--json").out)
    assert (told["version"], told["prefix"], told["kept"], told["permissions"]) == (1, shop.prefix, [1], {})
    assert [entry["name"] for entry in told["tools"]] == ["count-fruit"]
    assert json.loads(shop.catalog("show", "count-fruit", "--json").out) == told["tools"][0]


def test_what_differs(shop: Shop) -> None:
    shop.catalog("publish", "--tools", "shop.hy")
    assert shop.catalog("diff").err == (
        "quoth: v1 is the first version. To compare it with files: --tools FILE\n"
    )
    assert shop.catalog("diff", "--tools", "shop.hy").out == "v1 and the files have the same tools.\n"
    files(shop.folder, {"shop.hy": MORE})
    changed = "~ count-fruit\n    - (count-fruit :fruit str)\n    + (count-fruit :kind str)\n"
    assert shop.catalog("diff", "--tools", "shop.hy").out == f"From v1 to the files:\n{changed}"
    assert json.loads(shop.catalog("publish", "--tools", "shop.hy", "--json").out)["version"] == 2
    assert shop.catalog("diff").out == f"From v1 to v2:\n{changed}"
    told = {"from": "v1", "to": "v2", "added": [], "removed": [], "changed": ["count-fruit"], "code": []}
    assert json.loads(shop.catalog("diff", "--json").out) == told


def test_for_whom_a_tool_is_belongs_to_the_catalogue(shop: Shop) -> None:
    shop.catalog("publish", "--tools", "shop.hy")
    for_ann = "--tools", "shop.hy", "--allow", "count-fruit=ann"
    told = 'From v1 to the files:\n~ count-fruit\n    users: None → ["ann"]\n'
    assert shop.catalog("diff", *for_ann).out == told
    shop.catalog("publish", *for_ann)
    assert shop.catalog("show").out.endswith("\ncount-fruit is for ann.\n")
    assert json.loads(shop.catalog("show", "--json").out)["permissions"] == {"count-fruit": ["ann"]}
    assert shop.catalog("diff", *for_ann).out == "v2 and the files have the same tools.\n"


def test_who_watches_sees_each_change(shop: Shop) -> None:
    with started("catalog", "watch", *shop.words, cwd=shop.folder) as watching:
        lines = iter(watching.stdout.readline, "")
        assert next(lines) == "No catalog is published.\n"
        shop.catalog("publish", "--tools", "shop.hy")
        assert next(lines) == "v1  1 tool\n"
        files(shop.folder, {"shop.hy": MORE})
        shop.catalog("publish", "--tools", "shop.hy")
        assert next(lines) == "v2  1 changed: count-fruit\n"
        shop.catalog("publish", "--tools", "shop.hy")
        assert next(lines) == "v3  the same tools\n"
        watching.interrupt()
        said = watching.ended()
    assert (said.code, said.out, said.err) == (130, "", "quoth: Interrupted.\n")


def test_the_key_itself_is_never_shown(tmp_path: Path, state: Path) -> None:
    made = quoth("catalog", "key", "new", cwd=tmp_path)
    secret = (state / "catalog.key").read_text().strip()
    assert (state / "catalog.key").stat().st_mode & 0o777 == 0o600
    named = re.match(f"{CREATED_THE_KEY} ([0-9a-f]{{8}}): ", made.out)
    assert named
    shown = quoth("catalog", "key", "show", cwd=tmp_path)
    assert shown.out == f"{named[1]}  {state / 'catalog.key'}\n"
    told = quoth("catalog", "key", "show", "--json", cwd=tmp_path)
    assert json.loads(told.out) == {"path": str(state / "catalog.key"), "name": named[1]}
    assert secret not in made.out + shown.out + told.out
    again = quoth("catalog", "key", "new", cwd=tmp_path)
    assert again.err == f"quoth: There is already a key at {state / 'catalog.key'}; it was not overwritten.\n"
    assert quoth("catalog", "key", "new", "--key", "other.key", cwd=tmp_path).code == 0
    assert (tmp_path / "other.key").exists()


def test_whoever_has_another_key_is_not_believed(shop: Shop) -> None:
    shop.catalog("publish", "--tools", "shop.hy")
    quoth("catalog", "key", "new", "--key", "other.key", cwd=shop.folder)
    refused = shop.catalog("show", "--key", "other.key")
    assert refused.code == 1
    assert re.fullmatch(
        rf"quoth: {THE_CATALOG_V}1 of {shop.prefix} {IN_REDIS_WAS_REFUSED}: {IT_IS_SIGNED_WITH_THE}"
        rf" [0-9a-f]{{8}}, {AND_THE_KEY_HERE_IS} [0-9a-f]{{8}}\.\n",
        refused.err,
    )


WRONG = {
    ("publish",): "There is nothing to publish. Give a file of tools with --tools FILE.",
    ("publish", "--tools", "none.hy"): f"{THERE_IS_NO_FILE} none.hy.",
    ("show", "--prefix", "a b"): "The prefix a b is invalid. Use 1 to 64 letters, digits and . _ : -",
    ("show", "--redis", "redis://h?x=1"): (
        "The URL of the Redis server has the unknown option x. The options are ssl_ca_certs, ssl_certfile,"
        " ssl_keyfile for rediss://, and db for unix://."
    ),
    ("show", "--redis", "redis://:hush@h"): (
        f"{A_PASSWORD_ON_THE_COMMAND}; set QUOTH_REDIS to the"
        " whole URL, or write @FILE, a file with the URL that only you may read."
    ),
    ("show", "--redis-ca", "ca.pem"): (
        "A CA or a certificate needs a server with TLS: its URL must begin with rediss://."
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_a_mistake_is_a_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    shop = Shop(tmp_path, "redis://127.0.0.1:1", key=False)
    shop.words = [] if "--redis" in words or "--prefix" in words else shop.words
    said = shop.catalog(*words)
    assert (said.code, said.out, said.err) == (2, "", f"quoth: {WRONG[words]}\n")


def test_no_server_and_no_key(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "redis://127.0.0.1:1", key=False)
    assert shop.catalog("show").err.startswith(f"quoth: {THERE_IS_NO_KEY_AT} ")
    quoth("catalog", "key", "new", cwd=tmp_path)
    gone = shop.catalog("show", "--json")
    message = f"{THE_REDIS_AT} redis://127.0.0.1:1 {CANNOT_BE_USED}: {NO_SERVER_ANSWERS_THERE}."
    assert (gone.code, json.loads(gone.out)) == (1, {"status": "error", "message": message})


def test_no_password_is_printed(tmp_path: Path) -> None:
    """Not where it comes from the environment, and not when the server repeats it."""
    Shop(tmp_path, "")
    with pretended_redis({"INFO": "-ERR hush-hush is not known"}) as url:
        env = {"QUOTH_REDIS": url.replace("://", "://ann:hush-hush@")}
        said = quoth("catalog", "show", cwd=tmp_path, env=env)
    assert (said.code, said.err) == (
        1,
        f"quoth: {THE_REDIS_AT} {url} {CANNOT_BE_USED}: {IT_REFUSES_THE_CONNECTION}.\n",
    )
