"""A Flux Kustomization and its GitRepository as a configuration reads what is printed for them."""

from __future__ import annotations

from typing import Any

import pytest

from handler.config.decryption import Decryption
from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, Revision, SecretRef, SshAuth
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.renderer_settings import RendererSettings
from handler.config.settings import Cluster, HealthCheckExpr, IgnoreRule, IgnoreSelect, Impersonate, Prune, Target, Wait
from handler.config.settings_shape import Json
from tests.unit.cli.importing.custom_resources import GIT_URL, converted, git, ks, lost, notes, read, settings_of, target, unsaid
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

SSH = "ssh://git@git.example.com/acme/shop"


def test_a_whole_one_is_the_target_that_does_the_same() -> None:
    found = target(
        git(),
        ks(
            path="./deploy/prod/",
            targetNamespace="web",
            wait=True,
            timeout="1m30s",
            serviceAccountName="deployer",
            kubeConfig={"secretRef": {"name": "prod", "key": "config"}},
            healthCheckExprs=[{"apiVersion": "a.io/v1", "kind": "C", "current": "status.ok", "failed": "false"}],
            ignore=[{"paths": ["/spec/replicas"], "target": {"group": "apps", "kind": "Deployment", "name": "web-.*"}}],
        ),
    )
    assert found == Target(
        name="apps",
        repository=Repository(url=GIT_URL),
        revision=Revision(branch="main"),
        path="deploy/prod",
        renderer=RendererSettings(type="kustomize", generate=True),
        namespaces=("web",),
        namespace="web",
        cluster_scoped=("Namespace",),
        cluster=Cluster(kubeconfig=SecretRef(kubernetes_secret="flux-system/prod/config")),
        impersonate=Impersonate("flux-system/deployer"),
        adopt=("flux",),
        ignore=(IgnoreRule(IgnoreSelect("apps", "Deployment", "web-*"), ("/spec/replicas",)),),
        prune=Prune(enabled=True),
        wait=Wait(timeout=90.0),
        health_check_exprs=(HealthCheckExpr("a.io/v1", "status.ok", "C", failed="false"),),
    )


@each_row(
    ("spec", "changed"),
    [
        ({}, {"namespaces": ("*",), "wait": None, "suspend": False}),
        ({"prune": False}, {"prune": Prune(enabled=False)}),
        ({"suspend": True}, {"suspend": True}),
        ({"wait": True}, {"wait": Wait()}),
        ({"healthChecks": [{"kind": "Deployment", "name": "web"}], "timeout": "10m0s"}, {"wait": Wait(timeout=600.0)}),
        ({"timeout": "10m0s"}, {"wait": None}),
        ({"path": "./"}, {"path": ""}),
        ({"path": "../../etc"}, {"path": "etc"}),  # source-controller joins it below the root, too
    ],
)
def test_each_field_is_its_setting(spec: dict[str, Any], changed: dict[str, Any]) -> None:
    found = target(git(), ks(**spec))
    assert {name: getattr(found, name) for name in changed} == changed


@each_row(
    ("ref", "revision"),
    [
        (None, Revision(branch="master")),
        ({"branch": "dev", "tag": "v1"}, Revision(tag="v1")),
        ({"tag": "v1", "semver": ">= 1.2.0, <v2.0.0"}, Revision(semver=">=1.2.0 <2.0.0")),
        ({"branch": "dev", "commit": "a" * 40}, Revision(commit="a" * 40)),
        ({"name": "refs/heads/dev"}, Revision(branch="dev")),
        ({"name": "refs/tags/v1"}, Revision(tag="v1")),
    ],
)
def test_a_revision_is_what_flux_checks_out(ref: Any, revision: Revision) -> None:
    found = converted(git(ref=ref), ks())
    assert (read(found).targets[0].revision, unsaid(found)) == (revision, [])


@each_row("ref", [{"name": "refs/pull/1/head"}, {"semver": "no range"}, {"commit": "abc"}])
def test_a_revision_that_cant_be_followed_makes_no_target(ref: Any) -> None:
    assert converted(git(ref=ref), ks()).targets == ()


@each_row(
    ("url", "secret", "auth"),
    [
        (GIT_URL, None, RepositoryAuth()),
        (GIT_URL, "login", RepositoryAuth(BasicAuth("x-access-token", SecretRef(kubernetes_secret="flux-system/login/password")))),
        (SSH, None, RepositoryAuth(ssh=SshAuth(SecretRef(env="GIT_SSH_KEY"), "/etc/anneal/known_hosts"))),
        (SSH, "key", RepositoryAuth(ssh=SshAuth(SecretRef(kubernetes_secret="flux-system/key/identity"), "/etc/anneal/known_hosts"))),
    ],
)
def test_a_secret_is_named_with_the_command_that_prints_the_rest(url: str, secret: str | None, auth: RepositoryAuth) -> None:
    given = git(url=url, secretRef={"name": secret} if secret else None)
    assert target(given, ks()).repository == Repository(url=url, auth=auth)
    said = notes(converted(given, ks())).get("spec.secretRef.name")
    assert (said is None) is (secret is None)
    assert said is None or f"kubectl get secret/{secret} -n flux-system -o jsonpath=" in said.text


def test_credentials_of_a_url_are_never_printed() -> None:
    found = target(git(url="https://me:canary-5b1e@git.example.com/acme/shop"), ks())
    assert found.repository.url == "https://git.example.com/acme/shop"
    assert found.repository.auth.basic == BasicAuth("x-access-token", SecretRef(env="GIT_TOKEN"))
    assert "canary-5b1e" not in str(notes(converted(git(url="https://me:canary-5b1e@git.example.com/acme/shop"), ks())))


def test_a_secret_of_age_keys_becomes_the_block_that_decrypts() -> None:
    spec: dict[str, Any] = {"decryption": {"provider": "sops", "secretRef": {"name": "keys"}}}
    found = target(git(), ks(**spec))
    assert found.decryption == Decryption(age=(SecretRef(kubernetes_secret="flux-system/keys/age.agekey"),))
    said = notes(converted(git(), ks(**spec)))
    assert ".agekey" in said["spec.decryption.secretRef.name"].text
    assert "decryption: {mac: ignore}" in said["spec.decryption.provider"].text
    assert not found.suspend


@each_row(
    "spec",
    [
        {"postBuild": {"substitute": {"a.b": "c"}}},
        {"postBuild": {"substituteFrom": [{"kind": "Service", "name": "x"}]}},
        {"targetNamespace": "web", "postBuild": {"substituteFrom": [{"kind": "Secret", "name": "x"}]}},
        {"decryption": {"provider": "sops"}},
        {"decryption": {"provider": "other", "secretRef": {"name": "age"}}},
        {"decryption": {"provider": "sops", "serviceAccountName": "kms"}},
        {"patches": [{"patch": "x"}]},
        {"images": [{"name": "a", "newTag": "1"}]},
        {"components": ["../c"]},
        {"namePrefix": "x-"},
        {"commonMetadata": {"labels": {"a": "b"}}},
        {"timeout": 5},
        {"ignore": [{"paths": ["/a"], "target": {"labelSelector": "a=b"}}]},
        {"ignore": [{"paths": ["/a"], "target": {"name": "a|b"}}]},
        {"healthCheckExprs": [{"apiVersion": "a.io/v1", "current": "not )"}]},
    ],
)
def test_what_would_be_done_otherwise_is_named_and_suspends(spec: dict[str, Any]) -> None:
    found = converted(git(), ks(**spec))
    field = [*spec][-1]
    assert any(each.startswith(f"spec.{field}") for each in lost(git(), ks(**spec)))
    assert read(found).targets[0].suspend


def test_variables_are_taken_over_and_read_where_flux_reads_them() -> None:
    sources = [{"kind": "ConfigMap", "name": "settings"}, {"kind": "Secret", "name": "login", "optional": True}]
    found = target(git(), ks(postBuild={"substitute": {"a": "1", "quote": '"'}, "substituteFrom": sources}))
    assert found.post_build == PostBuild(
        Json('{"a":"1","quote":"\\""}'), (SubstituteFrom("ConfigMap", "settings"), SubstituteFrom("Secret", "login", True)), "WithVariables"
    )
    assert (found.namespace, found.suspend) == ("flux-system", False)
    assert target(git(), ks(postBuild={"substituteStrategy": "Always"})).post_build == PostBuild(substitute_strategy="Always")
    assert target(git(), ks(postBuild={"substitute": {}})).post_build is None


@each_row("spec", [{"verify": {"mode": "HEAD", "secretRef": {"name": "keys"}}}, {"ignore": "*.md"}, {"recurseSubmodules": True}])
def test_what_a_source_does_beside_suspends_all_its_targets(spec: dict[str, Any]) -> None:
    found = read(converted(git(**spec), ks("one"), ks("two")))
    assert [each.suspend for each in found.targets] == [True, True]


@each_row(
    ("spec", "field", "says"),
    [
        ({"dependsOn": [{"name": "infra"}]}, "spec.dependsOn[0]", "isn't in the input; write the name of the target"),
        ({"dependsOn": [{"name": "apps"}]}, "spec.dependsOn[0]", "is itself"),
        ({"force": True}, "spec.force", "recreate: {kinds: [Deployment.apps]}"),
        ({"deletionPolicy": "Delete"}, "spec.deletionPolicy", "deletes nothing"),
        ({"targetNamespace": "web"}, "spec.targetNamespace", "doesn't override"),
        ({"odd": {"a": [1]}}, "spec.odd.a[0]", "doesn't know this field"),
    ],
)
def test_what_has_no_counterpart_is_named_with_what_to_do_instead(spec: dict[str, Any], field: str, says: str) -> None:
    assert says in lost(git(), ks(**spec))[field]
    assert not target(git(), ks(**spec)).suspend


def test_what_is_off_says_nothing() -> None:
    off: dict[str, Any] = {"force": False, "patches": [], "dependsOn": [], "suspend": False, "wait": False, "postBuild": {}}
    assert lost(git(recurseSubmodules=False), ks(**off)) == {}


@each_row("kind", ["OCIRepository", "Bucket", "ExternalArtifact"])
def test_a_source_that_isnt_git_makes_no_target(kind: str) -> None:
    found = converted(ks(sourceRef={"kind": kind, "name": "x"}), git(), ks("other"))
    assert [each["name"] for each, _ in found.targets] == ["other"]
    assert f"takes its manifests from {kind} objects" in notes(found)[""].text


def test_a_missing_source_is_named_with_the_command_that_prints_it() -> None:
    found = converted(ks(sourceRef={"kind": "GitRepository", "name": "shop", "namespace": "infra"}))
    (problem,) = found.problems
    assert problem.subject == "Kustomization/flux-system/apps"
    assert problem.fix.endswith("kubectl get GitRepository.source.toolkit.fluxcd.io/shop -n infra -o yaml")


def test_what_is_set_says_from_where() -> None:
    found = settings_of(git(), ks(wait=True))
    assert found["spec.path"] == "path"
    assert found["spec.url"] == "repository.url"
    assert found["spec.sourceRef.name"] == "repository"
