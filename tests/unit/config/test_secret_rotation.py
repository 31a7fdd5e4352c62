"""A rotated secret counts without a restart; a broken one changes nothing but the log."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, SecretRef, SshAuth, WebhookSecrets
from handler.config.remote_secrets import SecretClocks
from handler.config.secret_rotation import EVERY, Rotation
from handler.config.secrets import references, resolve_all
from handler.config.settings import ReplaySettings, ReplayToken, Settings, Target, WebhookSettings
from handler.config.webhook_providers import STOCK
from handler.model.errors import SecretUnavailable

OLD, NEW = "CANARY-old-webhook-secret", "CANARY-new-webhook-secret"
LONG_AGO = 1_700_000_000


class Rotating:
    """Files of secrets, and a clock that the test moves."""

    def __init__(self, directory: Path) -> None:
        self.now = 0.0
        self.directory = directory
        self.written = 0
        for name in ("hook", "token", "password"):
            self.write(name, f"{OLD}-{name}")
        auth = RepositoryAuth(BasicAuth("oauth2", self.ref("password")))
        target = Target("shop", Repository("https://git.example.com/shop.git", auth=auth), ("shop",))
        self.settings = Settings(
            (target,),
            webhooks=WebhookSettings(WebhookSecrets((self.ref("hook"),))),
            replay=ReplaySettings((ReplayToken("ci", self.ref("token")),)),
        )
        self.rotation = Rotation(self.settings, {}, clocks=SecretClocks(lambda: self.now, lambda: self.now))

    def ref(self, name: str) -> SecretRef:
        return SecretRef(file=str(self.directory / name))

    def write(self, name: str, value: str) -> None:
        """Write in place, with a time of its own that lies well in the past: nothing here depends on how fast the test is."""
        file = self.directory / name
        file.write_text(value)
        self.written += 1
        os.utime(file, (LONG_AGO + self.written, LONG_AGO + self.written))

    def hook(self) -> str:
        (accepted,) = self.rotation.webhook("github")
        return accepted.secret.reveal()


@pytest.fixture
def rotating(tmp_path: Path) -> Rotating:
    return Rotating(tmp_path)


def test_a_rotated_file_counts_after_the_next_look_and_no_look_comes_sooner(rotating: Rotating) -> None:
    rotating.write("hook", f"{NEW}-hook")
    rotating.write("token", f"{NEW}-token")
    rotating.now = EVERY / 2
    assert rotating.hook() == f"{OLD}-hook"
    rotating.now = EVERY
    assert rotating.hook() == f"{NEW}-hook"
    assert rotating.rotation.token(f"{NEW}-token".encode()) == rotating.settings.replay.tokens[0]
    assert rotating.rotation.token(f"{OLD}-token".encode()) is None


def test_a_git_password_is_read_at_the_moment_it_is_needed(rotating: Rotating) -> None:
    assert rotating.rotation.read(rotating.ref("password")).reveal() == f"{OLD}-password"
    rotating.write("password", f"{NEW}-password")
    assert rotating.rotation.read(rotating.ref("password")).reveal() == f"{NEW}-password"
    with pytest.raises(SecretUnavailable, match="is no git host's secret"):
        rotating.rotation.read(rotating.ref("hook"))


def test_kubernetes_swaps_a_link_and_not_the_file(tmp_path: Path) -> None:
    for version, value in (("v1", OLD), ("v2", NEW)):
        (tmp_path / version).mkdir()
        (tmp_path / version / "token").write_text(value)
        os.utime(tmp_path / version / "token", (LONG_AGO, LONG_AGO))
    (tmp_path / "..data").symlink_to("v1")
    (tmp_path / "token").symlink_to("..data/token")
    ref, now = SecretRef(file=str(tmp_path / "token")), [0.0]
    rotation = Rotation(
        Settings((), webhooks=WebhookSettings(WebhookSecrets((ref,)))), {}, clocks=SecretClocks(lambda: now[0], lambda: now[0])
    )
    (tmp_path / "..tmp").symlink_to("v2")
    (tmp_path / "..tmp").rename(tmp_path / "..data")
    now[0] = EVERY
    assert [accepted.secret.reveal() for accepted in rotation.webhook("github")] == [NEW]


def test_a_file_written_this_moment_is_read_again_although_its_time_is_the_same(
    rotating: Rotating, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handler.config.secret_rotation._FRESH", 3600.0)  # the moment lasts, however busy the machine is
    file = rotating.directory / "hook"
    file.write_text("CANARY-first-value-of-it")
    moment = file.stat().st_mtime_ns
    rotating.now = EVERY
    assert rotating.hook() == "CANARY-first-value-of-it"
    file.write_text("CANARY-other-value-of-it")
    os.utime(file, ns=(moment, moment))
    rotating.now += EVERY
    assert rotating.hook() == "CANARY-other-value-of-it"


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "doesn't exist"), ("short", "is shorter than 16 characters"), ("  \n", "is empty"), ("\0" * 70_000, "is larger")],
)
def test_a_broken_file_changes_nothing_and_is_said_once(
    rotating: Rotating, caplog: pytest.LogCaptureFixture, value: str | None, said: str
) -> None:
    caplog.set_level(logging.INFO)
    if value is None:
        (rotating.directory / "hook").unlink()
    else:
        rotating.write("hook", value)
    rotating.write("token", f"{NEW}-token")
    for _ in range(20):
        rotating.now += EVERY
        assert rotating.hook() == f"{OLD}-hook"
    assert rotating.rotation.token(f"{NEW}-token".encode()) is not None  # what is sound is renewed all the same
    (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert said in str(vars(warning)["fields"])
    assert "CANARY" not in str([vars(record) for record in caplog.records])
    rotating.write("hook", f"{NEW}-hook")
    rotating.now += EVERY
    assert rotating.hook() == f"{NEW}-hook"


def test_a_token_that_becomes_the_same_as_another_is_not_taken(tmp_path: Path) -> None:
    rotating = Rotating(tmp_path)
    ops = "CANARY-of-operations"
    tokens = (ReplayToken("ci", rotating.ref("token")), ReplayToken("ops", SecretRef(env="OPS")))
    now = [0.0]
    rotation = Rotation(Settings((), replay=ReplaySettings(tokens)), {"OPS": ops}, clocks=SecretClocks(lambda: now[0], lambda: now[0]))
    rotating.write("token", ops)
    now[0] = EVERY
    assert rotation.token(ops.encode()) == tokens[1]
    assert rotation.token(f"{OLD}-token".encode()) == tokens[0]


def test_a_start_with_a_broken_secret_is_refused(tmp_path: Path) -> None:
    settings = Settings((), webhooks=WebhookSettings(WebhookSecrets((SecretRef(file=str(tmp_path / "no")),))))
    with pytest.raises(SecretUnavailable, match="doesn't exist"):
        Rotation(settings, {})
    Rotation(settings, {}, needs={"git"})


def test_every_reference_that_is_resolved_is_watched() -> None:
    ref = [SecretRef(env=f"SECRET_{number}") for number in range(12)]
    hooks = replace(WebhookSettings(), **{name: WebhookSecrets((each,)) for name, each in zip(STOCK, ref, strict=False)})  # type: ignore[arg-type]  # mypy reads every field as the first one's type
    assert len(STOCK) == 6
    keyed = Repository("ssh://h/x", auth=RepositoryAuth(ssh=SshAuth(ref[6], "known", ref[7])), webhook=WebhookSecrets((ref[8],)))
    plain = Repository("https://h/x", auth=RepositoryAuth(BasicAuth("a", ref[9])))
    targets = (Target("keyed", keyed, ("a",)), Target("plain", plain, ("a",)))
    settings = Settings(targets, webhooks=hooks, replay=ReplaySettings((ReplayToken("ci", ref[10]), ReplayToken("ops", ref[11]))))
    secrets = resolve_all(settings, {each.env: f"CANARY-long-enough-{each.env}" for each in ref})
    assert set(references(settings)) == secrets.known.keys() == set(ref)
