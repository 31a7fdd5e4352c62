"""The digest moves with everything that shapes a result, and with nothing else."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from handler.config import git_settings as g
from handler.config import settings as s
from handler.config import settings_digest as digest
from handler.config.decryption import Decryption
from handler.config.feedback_settings import PullRequestSettings
from handler.config.instance_target import instance_target
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.renderer_settings import ChartSource, RendererSettings
from handler.config.settings_digest import settings_digest
from handler.config.settings_shape import Json
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.instance import Instance
from tests.unit.rows import each_row

SET = s.ApplySetId("applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1")
TARGET = s.Target("shop", g.Repository("https://git.example.com/shop.git"), ("shop", "jobs"), cluster_scoped=("Namespace", "ClusterRole.x"))
WIDGETS = ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),))
SHAPES: dict[str, Any] = {
    "repository": g.Repository("https://git.example.com/other.git"),
    "namespaces": ("shop",),
    "revision": g.Revision(tag="main"),
    "path": "deploy",
    "renderer": RendererSettings(exclude=("x",)),
    "namespace": "shop",
    "cluster_scoped": ("Namespace",),
    "impersonate": s.Impersonate("shop/deployer"),
    "adopt": "never",
    "compat": "kubernixos",
    "ignore": (s.IgnoreRule(paths=("/spec",)),),
    "prune": s.Prune(allow_empty=True),
    "recreate": s.RecreateSettings(("Deployment.apps",)),
    "verify": g.Verify(ssh=("ssh-ed25519 AAAA",)),
    "rollout": "deploy/rollout.yaml",
    "decryption": Decryption(kms=("arn",)),
    "charts": (ChartSource("oci://registry.example.com/charts"),),
    "exclusive": ("shop",),
    "post_build": PostBuild(Json('{"a":"b"}')),
    "trigger": TriggerSettings(WIDGETS),
}
NEUTRAL: dict[str, Any] = {
    "name": "other",
    "cluster": s.Cluster(in_cluster=True),
    "drift": "report",
    "validate": "none",
    "suspend": True,
    "renamed_from": "older",
    "wait": s.Wait(),
    "health_check_exprs": (s.HealthCheckExpr("example.com/v1", "true"),),
    "rollback": s.Rollback(on_failure=True),
    "evidence": s.EvidenceSettings("record"),
    "sandbox": "weak",
    "orphan_grace": 60.0,
    "depends_on": ("infra",),
    "pull_requests": PullRequestSettings("shop/planner"),
}


@each_row("field", SHAPES)
def test_a_setting_that_shapes_the_result_changes_the_digest(field: str) -> None:
    assert settings_digest(replace(TARGET, **{field: SHAPES[field]})) != settings_digest(TARGET)


def test_variables_their_sources_order_and_strategy_count() -> None:
    sources = (SubstituteFrom("ConfigMap", "a"), SubstituteFrom("Secret", "b"))
    found = [
        PostBuild(),
        PostBuild(Json('{"a":"b"}')),
        PostBuild(Json('{"a":"c"}')),
        PostBuild(substitute_from=sources),
        PostBuild(substitute_from=sources[::-1]),
        PostBuild(substitute_strategy="Always"),
    ]
    assert len({settings_digest(replace(TARGET, post_build=each)) for each in (None, *found)}) == len(found) + 1


@each_row("field", NEUTRAL)
def test_a_setting_that_does_not_shape_the_result_keeps_the_digest(field: str) -> None:
    assert settings_digest(replace(TARGET, **{field: NEUTRAL[field]})) == settings_digest(TARGET)


def test_every_setting_is_in_the_digest_or_left_out_by_name() -> None:
    assert {field.name for field in fields(s.Target)} == SHAPES.keys() | NEUTRAL.keys()


@each_row(
    "same",
    [
        replace(TARGET, namespaces=("jobs", "shop", "shop")),
        replace(TARGET, cluster_scoped=("ClusterRole.x", "Namespace")),
        replace(TARGET, revision=g.Revision()),
        replace(TARGET, revision=g.Revision(promoted=g.Promoted(("staging",), 60.0))),
        replace(TARGET, prune=s.Prune(hold_above=s.HoldAbove(1, 0.1))),
        replace(
            TARGET,
            repository=g.Repository(
                TARGET.repository.url,
                aliases=("git@git.example.com:shop.git",),
                auth=g.RepositoryAuth(g.BasicAuth("x", g.SecretRef(env="TOKEN"))),
                tls=g.Tls("ca.pem"),
                webhook=g.WebhookSecrets((g.SecretRef(env="SECRET"),)),
            ),
        ),
    ],
)
def test_order_access_and_guards_keep_the_digest(same: s.Target) -> None:
    assert settings_digest(same) == settings_digest(TARGET)


def test_keys_of_encrypted_files_change_the_digest_in_no_order() -> None:
    refs = g.SecretRef(env="ONE"), g.SecretRef(file="two")
    one, other = (settings_digest(replace(TARGET, decryption=Decryption(age, ("a", "b")))) for age in (refs, refs[::-1]))
    assert one == other
    kinds = (Decryption(refs[:1], ("a", "b")), Decryption(refs, ("a",)), Decryption(refs, ("a", "b"), "ignore"))
    assert len({one, *(settings_digest(replace(TARGET, decryption=each)) for each in kinds)}) == 4


def widget(**more: Any) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "shop", "uid": "u-1", "resourceVersion": "7", "generation": 1}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": 1}, **more}


def test_the_object_of_an_instance_is_a_setting_of_it_and_its_status_is_none() -> None:
    template = replace(TARGET, trigger=TriggerSettings(WIDGETS))
    one, same, other = (
        settings_digest(instance_target(template, Instance.of(each)))
        for each in (widget(), widget(status={"phase": "Ready"}), widget(spec={"size": 2}))
    )
    assert one == same
    assert len({one, other, settings_digest(template)}) == 3
    unwritten = replace(template, trigger=TriggerSettings(replace(WIDGETS, write_status=False)))
    assert settings_digest(instance_target(unwritten, Instance.of(widget()))) == one


def test_an_upgrade_keeps_the_digest() -> None:
    assert settings_digest(TARGET) == "3c112cf115c9a999569efb1871d0f8f05c8ddfe7986be4439508e8810cb09cb3"


def test_adopted_tools_change_the_digest_in_no_order() -> None:
    one, other = (settings_digest(replace(TARGET, adopt=tools)) for tools in (("flux", "helm"), ("helm", "flux", "helm")))
    assert one == other
    others = (TARGET, replace(TARGET, adopt=("flux",)), replace(TARGET, adopt=("flux", "helm", SET)))
    assert len({one, *map(settings_digest, others)}) == 4
    assert settings_digest(others[-1]) == settings_digest(replace(TARGET, adopt=(SET, "helm", "flux")))


@each_row("prune", [s.Prune(enabled=False), s.Prune(kinds=("Namespace",))])
def test_kinds_that_may_be_pruned_change_the_digest(prune: s.Prune) -> None:
    assert settings_digest(replace(TARGET, prune=prune)) != settings_digest(TARGET)


KEYS = ("ssh-ed25519 AAAA release", "ssh-rsa BBBB")
BLOCKS = ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\none\n-----END PGP PUBLIC KEY BLOCK-----", "-----BEGIN other")


@each_row(
    "same",
    [
        g.Verify(KEYS[::-1], BLOCKS),
        g.Verify(KEYS, BLOCKS[::-1]),
        g.Verify(("ssh-ed25519 AAAA somebody else of the team", "ssh-rsa BBBB with a comment"), BLOCKS),
        g.Verify((*KEYS, "ssh-ed25519 AAAA twice"), (*BLOCKS, BLOCKS[0])),
        g.Verify(KEYS, (f"\n{BLOCKS[0]}\r\n \n", BLOCKS[1])),
    ],
)
def test_order_and_comments_of_verify_keys_keep_the_digest(same: g.Verify) -> None:
    assert settings_digest(replace(TARGET, verify=same)) == settings_digest(replace(TARGET, verify=g.Verify(KEYS, BLOCKS)))


@each_row(
    "other",
    [
        g.Verify(KEYS[:1], BLOCKS),
        g.Verify(KEYS, BLOCKS[:1]),
        g.Verify(("ssh-ed25519 AAAB release", "ssh-rsa BBBB"), BLOCKS),
        g.Verify(("ssh-rsa AAAA release", "ssh-rsa BBBB"), BLOCKS),
        g.Verify(KEYS, ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\ntwo\n-----END PGP PUBLIC KEY BLOCK-----", BLOCKS[1])),
    ],
)
def test_other_verify_keys_change_the_digest(other: g.Verify) -> None:
    assert settings_digest(replace(TARGET, verify=other)) != settings_digest(replace(TARGET, verify=g.Verify(KEYS, BLOCKS)))


def test_what_a_revision_names_counts_beside_its_name() -> None:
    sha, version = "0" * 40, "1.2"
    of_a_commit = (g.Revision(sha), g.Revision(tag=sha), g.Revision(commit=sha))
    of_a_version = (g.Revision(version), g.Revision(tag=version), g.Revision(semver=version))
    assert len({settings_digest(replace(TARGET, revision=each)) for each in (*of_a_commit, *of_a_version)}) == 6


def test_a_new_state_format_changes_the_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    before = settings_digest(TARGET)
    monkeypatch.setattr(digest, "STATE_FORMAT", digest.STATE_FORMAT + 1)
    assert settings_digest(TARGET) != before
