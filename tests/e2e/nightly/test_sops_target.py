"""A target whose repository holds files that SOPS has encrypted: applied, closed to other targets, and shown nowhere."""

from __future__ import annotations

import io
import json

from handler.model.errors import DecryptionRefused
from handler.model.result import Outcome, Result
from handler.model.to_json import plain
from tests.e2e.one_target import Shop, told
from tests.e2e.planted_secrets import CANARY, OTHER, assert_silent, run, spellings
from tests.e2e.rendered_trees import get, push_files, unchanged
from tests.e2e.test_sops_target import TREES, files, shop  # noqa: F401 - fixtures, too
from tests.rooms.render.sops_files import ALICE, BOB, encrypted

PLANTED = (CANARY, OTHER)


def renderer(shop: Shop) -> str:
    return "file" if shop.target.renderer.type == "auto" else shop.target.renderer.type


def test_what_was_encrypted_is_applied_and_shows_nowhere(shop: Shop, logged: io.StringIO) -> None:
    name = renderer(shop)
    push_files(shop, files(name, CANARY, OTHER))
    results: list[Result] = [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    assert results[1].outcome is Outcome.APPLIED, told(results[1])
    assert get(shop, "secret", "login")["data"].keys() == {"password"}
    unchanged(shop.run("drift"))
    push_files(shop, files(name, OTHER, CANARY))
    results += [run(shop, shop.job("oneoff", dry_run=True)), run(shop, shop.job())]
    assert results[3].outcome is Outcome.APPLIED, told(results[3])
    push_files(shop, {**files(name, CANARY, OTHER), **broken(name)})
    results.append(run(shop, shop.job()))
    assert results[-1].outcome is Outcome.FAILED, told(results[-1])
    assert_silent(shop, logged, *results, planted=(*PLANTED, ALICE.secret))
    shown = [json.dumps(plain(result.plan)) for result in results if result.plan]
    assert [text for text in shown for value in PLANTED for each in spellings(value) if each in text] == []
    events = shop.kubectl.run("get", "events", "-n", shop.name, "-o", "yaml")
    assert not any(text in events for value in PLANTED for text in spellings(value))


def broken(name: str) -> dict[str, str]:
    """Return a file by whose mistake a value would be quoted: by the API server, by helm."""
    if name == "helm":
        return {"deploy/templates/bad.yaml": "{{ fail .Values.password }}"}
    service = f"apiVersion: v1\nkind: Service\nmetadata: {{name: bad}}\nspec: {{clusterIP: {json.dumps(CANARY)}, ports: [{{port: 1}}]}}\n"
    made = {"deploy/bad.yaml": encrypted("a.yaml", service, "--encrypted-regex", "^clusterIP$").decode()}
    if name == "kustomize":
        made["deploy/kustomization.yaml"] = TREES[name][1]["deploy/kustomization.yaml"].replace("login.yaml", "login.yaml, bad.yaml")
    return made


def test_a_file_that_was_copied_from_another_repository_stays_closed(shop: Shop) -> None:
    push_files(shop, files(renderer(shop), CANARY, OTHER, to=BOB.recipient))
    refused = shop.run()
    assert (refused.outcome, refused.code) == (Outcome.FAILED, DecryptionRefused.code), told(refused)
    assert BOB.recipient in refused.problems[0].message
    assert shop.kubectl.tried("get", "secret", "login", "-n", shop.name).returncode
