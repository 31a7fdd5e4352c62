"""A good configuration becomes exactly these values, and the file is found where the operator put it."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

from handler.config import git_settings as g
from handler.config import load as loading
from handler.config import settings as s
from handler.config.decryption import Decryption
from handler.config.feedback_settings import FeedbackSettings, PullRequestSettings
from handler.config.load import find, load, parse
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.renderer_settings import OPTIONS, ChartSource, RendererSettings
from handler.config.settings_shape import Json, slots
from handler.model.errors import ConfigInvalid
from handler.model.names import applyset_id
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).with_name("samples")
SET = applyset_id("anneal-bank", "bank")
HEAD = "apiVersion: anneal.dev/v1alpha1\nkind: Config\n"
LEAST = HEAD + "targets: [{name: shop, repository: {url: 'https://git.example.com/shop.git'}, namespaces: [shop]}]\n"


def test_the_least_configuration_has_every_default() -> None:
    target = s.Target("shop", g.Repository("https://git.example.com/shop.git"), ("shop",))
    settings = parse(LEAST)
    assert settings == s.Settings((target,))
    assert settings.target("shop") == target
    assert settings.target("shopp") is None
    assert target.revision.ref == "refs/heads/main"


ISSUERS = s.HealthCheckExpr(
    api_version="cert-manager.io/v1",
    current="status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
    kind="ClusterIssuer",
    in_progress="status.conditions.exists(e, e.type == 'Issuing' && e.status == 'True')",
    failed="status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'False')",
)


CHARTS = ChartSource("https://charts.example.com", g.BasicAuth("anneal", g.SecretRef(env="CHARTS_TOKEN")), "/etc/anneal/charts.pem")

FEEDBACK = FeedbackSettings(
    status=False,
    status_for="all",
    pull_requests=True,
    forks=True,
    token=g.SecretRef(env="GIT_STATUS_TOKEN"),
    username="robot",
    host="gitlab",
    api_url="https://git.example.com/gitlab/api/v4",
    page_url="https://anneal.example.com",
)


def test_the_full_sample_is_read_into_every_field() -> None:
    shop = load(SAMPLES / "full.yaml", renderers=("file", "own")).targets[0]
    assert shop == s.Target(
        name="shop-prod",
        repository=g.Repository(
            url="https://git.example.com/acme/shop.git",
            aliases=("git@git.example.com:acme/shop.git",),
            auth=g.RepositoryAuth(g.BasicAuth("oauth2", g.SecretRef(env="GIT_TOKEN"))),
            tls=g.Tls("/etc/anneal/ca.pem"),
            webhook=g.WebhookSecrets((g.SecretRef(env="SHOP_WEBHOOK_SECRET"),)),
            feedback=FEEDBACK,
        ),
        namespaces=("shop", "shop-jobs"),
        revision=g.Revision(tag="v1.2"),
        path="deploy/prod",
        renderer=RendererSettings("own", ("**/*.jsonnet",), ("drafts/**",)),
        post_build=PostBuild(Json('{"region":"eu-1"}'), (SubstituteFrom("Secret", "shop-vars", True),), "Always"),
        charts=(CHARTS,),
        decryption=Decryption((g.SecretRef(env="AGE_KEYS"),), ("arn:aws:kms:eu-central-1:123456789012:alias/shop",), "ignore"),
        sandbox="weak",
        cluster=s.Cluster(g.SecretRef(file="/etc/anneal/kubeconfig"), "prod", server="https://10.0.0.1:6443"),
        namespace="shop",
        cluster_scoped=("Namespace", "CustomResourceDefinition.apiextensions.k8s.io"),
        impersonate=s.Impersonate("shop/deployer"),
        adopt="never",
        compat="kubernixos",
        ignore=(s.IgnoreRule(s.IgnoreSelect("apps", "Deployment", "api", "shop"), ("/spec/replicas",)),),
        prune=s.Prune(enabled=False, kinds=("PersistentVolumeClaim",), hold_above=s.HoldAbove(20, 0.5), allow_empty=True),
        recreate=s.RecreateSettings(("Deployment.apps",)),
        exclusive=("shop-jobs",),
        orphan_grace=7200.0,
        drift="report",
        validate="none",
        verify=g.Verify(
            ("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleExam release",),
            ("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDMEexample\n-----END PGP PUBLIC KEY BLOCK-----\n",),
        ),
        wait=s.Wait(600.0, 120.0),
        health_check_exprs=(ISSUERS,),
        rollout="deploy/rollout.yaml",
        rollback=s.Rollback(on_failure=True),
        evidence=s.EvidenceSettings("record"),
        depends_on=("edge",),
        pull_requests=PullRequestSettings("shop/planner"),
        renamed_from="shop-old",
        suspend=True,
    )


def test_the_full_sample_has_targets_of_each_sign_in_revision_and_cluster() -> None:
    _, edge, keyed, app, prod, elsewhere, _ = load(SAMPLES / "full.yaml", renderers=("file", "own")).targets
    assert keyed.repository.auth == g.RepositoryAuth(
        ssh=g.SshAuth(g.SecretRef(file="/run/secrets/key"), "/etc/anneal/known_hosts", g.SecretRef(env="KEY_PASSPHRASE"))
    )
    assert prod.revision == g.Revision(branch="release", promoted=g.Promoted(("by-app", "by-?pp"), 3600.0))
    kubeconfig = g.SecretRef(file="/etc/anneal/staging.kubeconfig")
    proven = g.Promoted(("edge",), cluster=s.Cluster(kubeconfig, "staging"), state_namespace="anneal-staging", installation="staging")
    assert elsewhere.revision == g.Revision(branch="trunk", promoted=proven)
    assert app.repository.auth == g.RepositoryAuth(
        github_app=g.GitHubAppAuth("123456", 42, g.SecretRef(file="/run/secrets/app.pem"), "https://github.example.com/api/v3")
    )
    assert keyed.revision == g.Revision(semver=">=1.2 <2")
    assert (keyed.revision.ref, str(keyed.revision)) == ("", "the highest tag in >=1.2 <2")
    assert edge.cluster == s.Cluster(in_cluster=True)
    assert app.cluster == s.Cluster(eks=s.Eks("prod", "eu-central-1", "arn:aws:iam::123456789012:role/anneal-deploy"))
    assert edge.namespaces == ("*",)
    assert edge.revision == g.Revision(commit="0123456789abcdef0123456789abcdef01234567")


def test_the_full_sample_is_read_beside_its_targets() -> None:
    settings = load(SAMPLES / "full.yaml", renderers=("own",))
    assert (settings.installation, settings.state_namespace) == ("blue", "gitops")
    assert (settings.interval, settings.drift_interval, settings.lease_duration) == (5400.0, 600.0, 2.0)
    assert settings.webhooks.github.secrets == (g.SecretRef(env="GITHUB_WEBHOOK_SECRET"), g.SecretRef(file="/run/secrets/old"))
    assert settings.webhooks.generic.secrets == (
        g.SecretRef(env="GENERIC_WEBHOOK_SECRET"),
        g.SecretRef(aws_secrets_manager=g.AwsSecret("anneal/webhook", "generic", "AWSPREVIOUS")),
        g.SecretRef(aws_parameter="/anneal/generic"),
        g.SecretRef(kubernetes_secret="anneal-system/webhook/generic"),
    )
    assert settings.queue == s.QueueSettings(s.SqsSettings("https://sqs.eu-central-1.amazonaws.com/123456789012/anneal.fifo"))
    assert settings.prometheus == (
        s.PrometheusSettings("https://prometheus.example.com", g.SecretRef(env="PROMETHEUS_TOKEN"), "/etc/anneal/ca.pem"),
    )
    assert settings.health_check_exprs == (s.HealthCheckExpr("bitnami.com/v1alpha1", "status.phase == 'Ready'"),)
    assert settings.secrets_interval == 120.0
    assert settings.webhooks.trusted_proxies == ("10.0.0.0/8", "fd00::/8")
    assert (settings.webhooks.max_body, settings.metrics.bind) == (1_048_576, "127.0.0.1:9464")
    assert settings.replay.tokens[0].may == ("replay", "approve", "rollback", "read", "metrics")


OF_CLOUDS = ("aws_secrets_manager", "aws_parameter", "kubernetes_secret")


def defaults_in(value: Any, path: str = "") -> set[str]:
    """Every field that still has its default."""
    found = set()
    cls: type = type(value)
    for slot in slots(cls):
        here = getattr(value, slot.name)
        if not slot.required and here == slot.default:
            found.add(f"{path}{slot.name}")
        elif is_dataclass(here):
            found |= defaults_in(here, f"{path}{slot.name}.")
    return found


def test_the_full_sample_leaves_no_setting_out() -> None:
    settings = load(SAMPLES / "full.yaml", renderers=("own",))
    alternatives = {
        *("revision.branch", "revision.semver", "revision.commit", "revision.promoted", "cluster.in_cluster", "cluster.eks"),
        "trigger",
        *("repository.auth.ssh", "repository.auth.github_app", "repository.feedback.github_app"),
        *(f"repository.feedback.token.{each}" for each in ("file", *OF_CLOUDS)),
        *(f"repository.auth.basic.password.{each}" for each in ("file", *OF_CLOUDS)),
        *(f"renderer.{each}" for names in OPTIONS.values() for each in names),
        *(f"cluster.kubeconfig.{each}" for each in ("env", *OF_CLOUDS)),
    }
    places = {"page.key": "file", "page.proxy.secret": "file", "page.oidc.client_secret": "env"}
    assert defaults_in(settings) == {f"{place}.{each}" for place, other in places.items() for each in (other, *OF_CLOUDS)}
    assert defaults_in(settings.targets[0]) == alternatives
    trigger = settings.targets[-1].trigger
    assert trigger is not None
    assert trigger.resource is not None
    assert not defaults_in(trigger)
    main = trigger.resource.main
    assert (
        not defaults_in(main) | defaults_in(main.label_selector) | defaults_in(main.key_transformations[1], "replace.") - {"replace.action"}
    )
    assert main.label_selector.query == "team=shop,stage in (prod,staging),!legacy"


def test_the_example_of_the_documentation_is_read() -> None:
    settings = load(SAMPLES / "issue.yaml")
    assert settings.targets[0].prune == s.Prune()
    assert settings.interval == 300.0


@each_row(
    ("text", "seconds"),
    [("5m", 300.0), ("30s", 30.0), ("1h30m", 5400.0), ("90", 90.0), ("1.5", 1.5), ("1h1m1.5s", 3661.5), ("8760h", 31536000.0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse(LEAST + f"interval: {text}").interval == seconds


@each_row(("path", "tidy"), [("deploy/prod/", "deploy/prod"), ("./a//b/.", "a/b"), (".", ""), ('""', ""), ("a/", "a")])
def test_directories_are_normalised(path: str, tidy: str) -> None:
    assert parse(LEAST.replace("namespaces:", f"path: {path}, namespaces:")).targets[0].path == tidy


DEFAULTS = (
    HEAD
    + """
defaults:
  repository: {url: "https://git.example.com/all.git", auth: {basic: {username: x, password: {file: /run/token}}}}
  revision: {branch: trunk}
  cluster: {kubeconfig: {file: kubeconfig}, context: prod}
  clusterScoped: [Namespace]
  prune: {enabled: false, holdAbove: {count: 3}}
  namespaces: [a]
  namespace: a
targets:
"""
)


def test_defaults_are_merged_at_every_depth() -> None:
    plain, other = parse(DEFAULTS + "  - {name: x}\n  - {name: y, path: deploy, prune: {holdAbove: {fraction: 1}}}").targets
    assert plain.repository.url == other.repository.url == "https://git.example.com/all.git"
    assert other.prune == s.Prune(enabled=False, hold_above=s.HoldAbove(3, 1.0))
    assert other.cluster_scoped == ("Namespace",)
    assert plain.prune == s.Prune(enabled=False, hold_above=s.HoldAbove(3))


def test_lists_replace_those_of_the_defaults() -> None:
    (target,) = parse(DEFAULTS + "  - {name: x, clusterScoped: [], namespaces: [b], namespace: ''}").targets
    assert (target.cluster_scoped, target.namespaces, target.namespace) == ((), ("b",), "")


def test_tools_to_adopt_from_stand_where_a_word_may() -> None:
    text = DEFAULTS.replace("  namespace: a", "  namespace: a\n  adopt: [flux, helm]")
    x, y, z = parse(text + "  - {name: x}\n  - {name: y, adopt: [argocd]}\n  - {name: z, adopt: never}").targets
    assert [target.adopt for target in (x, y, z)] == [("flux", "helm"), ("argocd",), "never"]
    assert [target.adopts for target in (x, y, z)] == [("flux", "helm"), ("argocd",), ()]
    (other,) = parse(text + f"  - {{name: x, adopt: [helm, {SET}]}}").targets
    assert other.adopts == ("helm", SET)


def test_an_alternative_drops_the_one_that_defaults_wrote() -> None:
    text = "  - {name: x, revision: {tag: v1}, cluster: {inCluster: true}, repository: {auth: {basic: {password: {env: T}}}}}"
    text += "\n  - {name: y, revision: {semver: 1.x}, repository: {auth: {githubApp: {appId: a, installationId: 1, privateKey: {env: K}}}}}"
    target, other = parse(DEFAULTS + text).targets
    assert other.revision == g.Revision(semver="1.x")
    assert other.repository.auth == g.RepositoryAuth(github_app=g.GitHubAppAuth("a", 1, g.SecretRef(env="K")))
    assert target.revision == g.Revision(tag="v1")
    assert target.cluster == s.Cluster(in_cluster=True)
    assert target.repository.auth.basic == g.BasicAuth("x", g.SecretRef(env="T"))


def test_null_unsets_an_optional_default() -> None:
    (target,) = parse(DEFAULTS + "  - {name: x, repository: {auth: {basic: null}}}").targets
    assert target.repository.auth.basic is None


def test_anchors_are_read() -> None:
    text = "targets: [{name: a, repository: &r {url: 'https://h/x'}, namespaces: [n]}, {name: b, repository: *r, namespaces: [n]}]"
    first, second = parse(HEAD + text).targets
    assert first.repository == second.repository


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    file = tmp_path / "anneal.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + LEAST.replace("\n", "\r\n").encode())
    assert load(file) == parse(LEAST)


def test_the_flag_is_found_first_then_the_environment_then_the_directory_then_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag, named, here, system = (tmp_path / name for name in ("flag.yaml", "named.yaml", "anneal.yaml", "system.yaml"))
    monkeypatch.setattr(loading, "SYSTEM", system)
    environ = {"ANNEAL_CONFIG": str(named)}
    for file in (flag, named, here, system):
        file.touch()
    assert find("flag.yaml", environ, tmp_path) == flag
    assert find(None, environ, tmp_path) == named
    assert find(None, {"ANNEAL_CONFIG": ""}, tmp_path) == here
    here.unlink()
    assert find(None, {}, tmp_path) == system
    system.unlink()
    with pytest.raises(ConfigInvalid, match=r"found neither .*anneal\.yaml nor .*system\.yaml; run `anneal init`, pass --config FILE"):
        find(None, {}, tmp_path)


@pytest.mark.parametrize(
    ("flag", "environ", "origin"), [("no.yaml", {}, "--config"), (None, {"ANNEAL_CONFIG": "no.yaml"}, "ANNEAL_CONFIG")]
)
def test_a_named_configuration_file_must_exist(flag: str | None, environ: dict[str, str], origin: str, tmp_path: Path) -> None:
    (tmp_path / "anneal.yaml").touch()
    with pytest.raises(ConfigInvalid, match=f"{origin}: expected a file, found none at .*no.yaml"):
        find(flag, environ, tmp_path)


def test_config_imports_nothing_heavy() -> None:
    modules = ["load", "secrets", "settings_digest", "settings"]
    code = "import sys;" + ";".join(f"import handler.config.{name}" for name in modules)
    code += ";print([m for m in ('kubernetes', 'dulwich', 'jsonschema', 'urllib3', 'flask', 'cel_expr_python') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[3])
    assert ran.stdout.strip() == "[]"
