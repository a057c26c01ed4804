"""``quoth view``: starts the server if none runs, finds the one that does, and lets a browser in."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
from commands import started
from serving import SECONDS, key_file
from words import files, quoth

from quoth.agent.view.running import found


def seen(url: str) -> str:
    """The page that a browser sees once it has opened an address."""
    with httpx.Client(follow_redirects=True, timeout=SECONDS) as http:
        return http.get(url).text


def test_a_server_is_started_found_and_stopped(tmp_path: Path) -> None:
    shop = files(tmp_path / "shop", {"a.txt": "one\n"})
    keys = str(key_file(tmp_path))
    with started("view", "--print", "--port", "0", "--token-file", keys, cwd=shop) as running:
        url = running.stdout.readline().strip()
        assert "me may decide" in seen(url)
        assert "used before" in seen(url)
        other = quoth("view", "--print", "--as", "chat", cwd=shop)
        assert other.out.startswith(url.partition("/view/in?code=")[0])
        assert "chat may look" in seen(other.out.strip())
        wrong = quoth("view", "--print", "--as", "chta", cwd=shop)
        assert (wrong.code, wrong.out) == (2, "")
        assert "Did you mean chat?" in wrong.err
        inside = quoth("view", "--print", cwd=shop, env={"CLAUDECODE": "1"})
        assert (inside.code, inside.out) == (2, "")
        with httpx.Client(timeout=SECONDS) as http:
            http.get(quoth("view", "--print", cwd=shop).out.strip())
            with http.stream("GET", url.replace("in?", "events?")) as stream:
                running.process.send_signal(signal.SIGTERM)
                assert "".join(stream.iter_text()).startswith("retry:")  # it ends with the server
            running.ended()
    assert found(shop) is None
