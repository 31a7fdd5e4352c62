"""A proxy's headers count beside its secret, and only where they name a person clearly."""

from __future__ import annotations

import pytest
from werkzeug.datastructures import Headers

from handler.config.git_settings import SecretRef
from handler.config.page_settings import PageProxy
from handler.config.secrets import Secret
from handler.web.page.proxy_headers import Forged, Named, named
from handler.web.repeated_headers import each_once
from tests.unit.rows import each_row

SECRET = Secret("proxy-secret-0123456789")
PROXY = PageProxy(SecretRef(env="PROXY"))


def asked(**headers: str) -> Named | None:
    given = {"X-Anneal-Proxy": SECRET.reveal()} | {name.replace("_", "-"): value for name, value in headers.items()}
    return named(Headers(given), PROXY, SECRET)


def test_the_proxy_names_somebody_and_his_groups() -> None:
    found = asked(X_Forwarded_Email="ada@example.com", X_Forwarded_Groups="platform, developers,,on call ")
    assert found == Named("ada@example.com", ("platform", "developers", "on call"))
    assert asked(X_Forwarded_Email="ada@example.com") == Named("ada@example.com")


def test_utf_8_is_read_as_such() -> None:
    raw = {"X_Forwarded_Email": "josé@example.com".encode().decode("latin-1"), "X_Forwarded_Groups": "équipe".encode().decode("latin-1")}
    assert asked(**raw) == Named("josé@example.com", ("équipe",))


@each_row(
    "name",
    ["", " ", "a,b", "ada@example.com,eve@example.com", "ada\x00", "ada\tb", "\xff\xfe", "a" * 257, "a" * 10_240, "ada\x7f", "\xc2\x85ada"],
)
def test_a_name_that_nobody_can_have_names_nobody(name: str) -> None:
    assert asked(X_Forwarded_Email=name, X_Forwarded_Groups="platform") is None


@each_row("groups", ["\xff", "a\x01b", "a" * 10_240, each_once([("a", "platform"), ("A", "developers")])["a"]])
def test_groups_that_cant_be_read_name_nobody_rather_than_somebody_without_them(groups: str) -> None:
    assert asked(X_Forwarded_Email="ada@example.com", X_Forwarded_Groups=groups) is None


@each_row("secret", ["", "wrong", f"{SECRET.reveal()},{SECRET.reveal()}", f"{SECRET.reveal()} ", SECRET.reveal()[:-1], "\xff" * 9000])
@each_row("header", ["X-Forwarded-Email", "X-Forwarded-Groups"])
def test_without_the_secret_headers_are_forged(secret: str, header: str) -> None:
    with pytest.raises(Forged):
        named(Headers({"X-Anneal-Proxy": secret, header: "platform"}), PROXY, SECRET)


def test_a_wrong_secret_alone_is_noticed_and_none_at_all_is_nothing() -> None:
    with pytest.raises(Forged):
        named(Headers({"X-Anneal-Proxy": "wrong"}), PROXY, SECRET)
    assert named(Headers({"X-Forwarded-For": "10.0.0.1", "X-Forwarded-Host": "a"}), PROXY, SECRET) is None
    assert asked() is None
