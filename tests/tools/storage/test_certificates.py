"""Certificates are verified wherever there is a connection that has any."""

from __future__ import annotations

import pytest

from quoth.tools.storage.certificates import verified


@pytest.mark.parametrize(
    ("scheme", "proxy", "wanted"),
    [
        ("https", "", True),
        ("http", "", False),
        ("http", "https_proxy", True),
        ("http", "all_proxy", True),
        ("http", "no_proxy", False),
        ("", "", True),
    ],
)
def test_only_plain_http_without_a_proxy_has_none(
    monkeypatch: pytest.MonkeyPatch, scheme: str, proxy: str, wanted: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    if proxy:
        monkeypatch.setenv(proxy, "https://proxy.example:1")
    assert verified(scheme) is wanted
