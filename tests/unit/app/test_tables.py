"""Tables are arguments: what a configuration names must be in those that were handed over, and the door hears whom they know."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from flask import Flask

from handler.config.git_settings import Repository, SecretRef, WebhookSecrets
from handler.config.load import STOCK_RENDERERS
from handler.config.renderer_settings import RendererSettings
from handler.config.settings import Settings, Target, WebhookSettings
from handler.config.webhook_providers import STOCK, webhooks_of
from handler.library import RENDERERS, TRIGGERS, Tables, build
from handler.model.errors import ConfigInvalid
from handler.model.event import Job
from handler.model.run_trigger import RunTrigger
from handler.triggers import WEBHOOKS, Webhook
from tests.fakes.signed_webhooks import SECRETS, Kept, github_headers, github_push

OURS = WEBHOOKS["github"]
TEXT = """\
apiVersion: anneal.dev/v1alpha1
kind: Config
webhooks: {%s: {secrets: [{env: HOOK}]}}
targets:
  - {name: shop, repository: {url: https://git.example.com/acme/shop.git}, namespaces: [shop], renderer: {type: %s}}
"""
SHOP = Target("shop", Repository(url="https://git.example.com/acme/shop.git"), ("shop",))


def written(tmp_path: Path, provider: str = "acme", renderer: str = "filling") -> Path:
    path = tmp_path / "anneal.yaml"
    path.write_text(TEXT % (provider, renderer))
    return path


def with_ours(**more: Any) -> Tables:
    return Tables(renderers={**RENDERERS, "filling": RENDERERS["file"]}, triggers={**TRIGGERS, "acme": OURS}, **more)


def test_the_names_of_a_program_that_adds_nothing_are_those_of_the_tables() -> None:
    assert tuple(RENDERERS) == STOCK_RENDERERS
    assert set(WEBHOOKS) == set(STOCK)
    assert webhooks_of(WEBHOOKS) is WebhookSettings


def test_a_configuration_may_name_what_is_in_the_tables_and_nothing_else(tmp_path: Path) -> None:
    settings = with_ours().read(written(tmp_path))
    assert (settings.targets[0].renderer.type, settings.webhooks.acme.secrets) == ("filling", (SecretRef(env="HOOK"),))  # type: ignore[attr-defined]  # a field of this program's own
    with pytest.raises(ConfigInvalid) as refused:
        Tables().read(written(tmp_path))
    assert "webhooks.acme: unknown key" in str(refused.value)
    assert 'found "filling", which isn\'t known here' in str(refused.value)


def test_a_provider_that_a_program_leaves_out_has_no_secrets_either(tmp_path: Path) -> None:
    tables = Tables(triggers={"acme": OURS})
    with pytest.raises(ConfigInvalid, match=r"webhooks\.github: unknown key"):
        tables.read(written(tmp_path, "github", "file"))
    assert tables.read(written(tmp_path, "acme", "file")).targets


def test_what_asks_for_runs_is_no_provider_and_has_no_path(tmp_path: Path) -> None:
    spool = RunTrigger("asks", lambda _targets, _ask, _stop: None)
    tables = Tables(triggers={**TRIGGERS, "spool-2": spool})
    for name in ("interval", "spool-2"):
        with pytest.raises(ConfigInvalid, match=rf"webhooks\.{name}: unknown key"):
            tables.read(written(tmp_path, name, "file"))
    built = build(Settings((SHOP,)), triggers=tables.triggers, environ={})
    door = cast(Flask, built.door(Kept())).test_client()
    assert {name: door.post(f"/webhooks/{name}").status_code for name in ("interval", "spool-2")} == {"interval": 404, "spool-2": 404}


def test_a_trigger_that_can_be_no_path_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="can't be a path and a key"):
        Tables(triggers={"Acme/Git": OURS}).admitted(Settings((SHOP,)))


def test_settings_of_a_programs_own_are_held_to_the_tables() -> None:
    odd = Settings((Target("shop", SHOP.repository, ("shop",), renderer=RendererSettings("filling")),))
    with pytest.raises(ConfigInvalid, match="renderer 'filling' isn't known here; known are: auto, file, helm, jsonnet, kustomize"):
        build(odd)
    given = Settings((SHOP,), webhooks=WebhookSettings(github=WebhookSecrets((SecretRef(env="HOOK"),)), max_body=5000))
    made = with_ours().admitted(given)
    assert (made.webhooks.github, made.webhooks.max_body) == (given.webhooks.github, 5000)
    assert made.webhooks.acme == WebhookSecrets()  # type: ignore[attr-defined]  # a field of this program's own
    assert Tables().admitted(given) is given


def test_the_door_hears_those_that_the_table_knows(tmp_path: Path) -> None:
    def silent(*_: Any) -> Any:
        raise AssertionError("nobody signs for it")

    secret = SECRETS["GITHUB"]
    path, queue = written(tmp_path, renderer="file"), Kept()
    built = build(path, triggers={"acme": OURS, "mute": Webhook(silent, silent, silent)}, environ={"HOOK": secret})
    door = cast(Flask, built.door(queue)).test_client()
    body = github_push(url="https://git.example.com/acme/shop.git")
    answers = {name: door.post(f"/webhooks/{name}", data=body, headers=github_headers(body, secret)) for name in ("acme", "mute", "github")}
    assert {name: answer.status_code for name, answer in answers.items()} == {"acme": 202, "mute": 401, "github": 404}
    assert [job.target for job in queue.jobs] == ["shop"]
    assert isinstance(queue.jobs[0], Job)
