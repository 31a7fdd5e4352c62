"""What a configuration asks of the package and the roles."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from handler.config.decryption import Decryption
from handler.config.git_settings import AwsSecret, BasicAuth, Repository, RepositoryAuth, SecretRef, Verify, WebhookSecrets
from handler.config.page_settings import PageOidc, PageSettings, PageToken
from handler.config.settings import Cluster, Eks, PrometheusSettings, ReplaySettings, ReplayToken, Settings, Target, WebhookSettings
from handler.model.errors import ConfigInvalid
from infra.functions.configured import resources, settings_of, unfit, variables
from tests.unit.rows import each_row

HOOK, GIT, TOKEN = (SecretRef(aws_secrets_manager=AwsSecret(name)) for name in ("hook", "git", "token"))
AUTH = RepositoryAuth(basic=BasicAuth("oauth2", GIT))
TARGET = Target("shop", Repository("https://git.example.com/shop.git", auth=AUTH), ("shop",), cluster=Cluster(eks=Eks("prod", "eu-west-1")))
SETTINGS = Settings(
    targets=(TARGET,), webhooks=WebhookSettings(github=WebhookSecrets((HOOK,))), replay=ReplaySettings(tokens=(ReplayToken("ci", TOKEN),))
)


def rights(settings: Settings) -> dict[str, dict[str, list[str]]]:
    """Return what each policy allows: by function and action, the resources."""
    return {
        name.removesuffix("Reads").lower(): {
            statement["Action"]: [each if isinstance(each, str) else each["Fn::Sub"] for each in statement["Resource"]]
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]
        }
        for name, policy in resources(settings).items()
    }


def own(service: str, rest: str, region: str = "${AWS::Region}") -> str:
    return f"arn:${{AWS::Partition}}:{service}:{region}:${{AWS::AccountId}}:{rest}"


def test_each_function_reads_what_it_resolves_and_nothing_else() -> None:
    cluster = {"eks:DescribeCluster": [own("eks", "cluster/prod", "eu-west-1")]}
    git = {"secretsmanager:GetSecretValue": [own("secretsmanager", "secret:git-??????")]}
    assert rights(SETTINGS) == {
        "webhook": {"secretsmanager:GetSecretValue": [own("secretsmanager", "secret:hook-??????")]},
        "worker": git | cluster,
        "tick": cluster,
        "api": {"secretsmanager:GetSecretValue": [own("secretsmanager", "secret:token-??????")]} | cluster,
    }


PAGE = PageSettings(
    url="https://anneal.example.com",
    key=SecretRef(aws_secrets_manager=AwsSecret("page")),
    tokens=(PageToken("ada", SecretRef(env="ADA")),),
    oidc=PageOidc("https://login.example.com", "anneal", ca_file="login.pem"),
)


def test_with_a_page_the_door_of_people_reads_what_runs_read_too() -> None:
    settings = replace(SETTINGS, page=PAGE, targets=(replace(TARGET, decryption=Decryption(kms=("arn:aws:kms:key",))),))
    found = rights(settings)
    assert set(found["api"]["secretsmanager:GetSecretValue"]) == {
        own("secretsmanager", f"secret:{name}-??????") for name in ("token", "page", "git")
    }
    assert found["api"]["kms:Decrypt"] == found["worker"]["kms:Decrypt"] == ["arn:aws:kms:key"]
    assert found["webhook"] == rights(SETTINGS)["webhook"]
    assert found["tick"] == rights(SETTINGS)["tick"]
    assert variables(settings) == {"api": ("ADA",)}


def test_the_token_for_prometheus_is_read_by_who_runs_alone() -> None:
    metrics = SecretRef(aws_secrets_manager=AwsSecret("metrics"))
    settings = replace(SETTINGS, prometheus=(PrometheusSettings("https://prometheus.example.com", metrics),))
    secret = own("secretsmanager", "secret:metrics-??????")
    may_read = {name for name, found in rights(settings).items() if secret in found.get("secretsmanager:GetSecretValue", [])}
    assert may_read == {"worker"}


def test_a_kubeconfig_is_read_by_who_speaks_to_clusters_and_a_role_is_assumed_where_one_is_written() -> None:
    role = "arn:aws:iam::123456789012:role/deployer"
    targets = (
        replace(TARGET, name="a", cluster=Cluster(kubeconfig=SecretRef(aws_parameter="/anneal/kubeconfig"))),
        replace(TARGET, name="b", cluster=Cluster(eks=Eks("far", role=role))),
    )
    found = rights(replace(SETTINGS, targets=targets))
    for name in ("worker", "tick", "api"):
        assert found[name]["ssm:GetParameter"] == [own("ssm", "parameter/anneal/kubeconfig")]
        assert found[name]["sts:AssumeRole"] == [role]
        assert "eks:DescribeCluster" not in found[name], "the role that is assumed describes it"
    assert "ssm:GetParameter" not in found["webhook"]


@each_row("end", ["hook", "hook-AbC123", "my-tokens"])
def test_a_secret_by_its_arn_with_and_without_the_ending_that_amazon_gives_it(end: str) -> None:
    arn = f"arn:aws:secretsmanager:eu-west-1:1:secret:{end}"
    hooks = WebhookSettings(github=WebhookSecrets((SecretRef(aws_secrets_manager=AwsSecret(arn)),)))
    assert rights(replace(SETTINGS, webhooks=hooks))["webhook"] == {"secretsmanager:GetSecretValue": [arn, f"{arn}-??????"]}


@each_row(
    ("target", "told"),
    [
        (replace(TARGET, repository=Repository("ssh://git@example.com/a.git")), "targets[shop].repository.url: needs the SSH library"),
        (replace(TARGET, verify=Verify()), "targets[shop].verify: needs the OpenPGP library"),
        (replace(TARGET, cluster=Cluster()), "targets[shop].cluster: is none that a function reaches"),
        (replace(TARGET, cluster=Cluster(kubeconfig=SecretRef(file="a"))), "targets[shop].cluster: is none that a function reaches"),
        (
            replace(TARGET, repository=replace(TARGET.repository, auth=RepositoryAuth(basic=BasicAuth("x", SecretRef(file="/t"))))),
            "file /t: is no place that a function reaches",
        ),
    ],
)
def test_what_a_function_could_not_do_is_told_with_the_way_out(target: Target, told: str) -> None:
    assert unfit(SETTINGS, ssh=False) == ()
    (problem,) = unfit(replace(SETTINGS, targets=(target,)), ssh=False)
    assert str(problem).startswith(told)
    assert problem.fix


def test_ssh_and_signatures_are_no_mistake_once_they_are_packed() -> None:
    target = replace(TARGET, repository=Repository("ssh://git@example.com/a.git"), verify=Verify())
    assert unfit(replace(SETTINGS, targets=(target,)), ssh=True) == ()


def test_environment_variables_are_named_for_the_functions_that_resolve_them() -> None:
    hooks = WebhookSettings(github=WebhookSecrets((SecretRef(env="HOOK"), HOOK)), gitlab=WebhookSecrets((SecretRef(env="HOOK"),)))
    auth = RepositoryAuth(basic=BasicAuth("oauth2", SecretRef(env="GIT")))
    target = replace(TARGET, repository=replace(TARGET.repository, auth=auth), cluster=Cluster(kubeconfig=SecretRef(env="KUBE")))
    settings = replace(SETTINGS, webhooks=hooks, targets=(target,))
    named = {name: sorted(names) for name, names in variables(settings).items()}
    assert named == {"webhook": ["HOOK"], "worker": ["GIT", "KUBE"], "tick": ["KUBE"], "api": ["KUBE"]}
    assert unfit(settings, ssh=False) == ()


HEAD = "apiVersion: anneal.dev/v1alpha1\nkind: Config\ninclude: ['targets/*.yaml']\n"
SIGN_IN = """
page:
  url: https://anneal.example.com
  key: {env: KEY}
  oidc: {issuer: 'https://login.example.com', clientId: anneal, caFile: login.pem}
  roles: [{role: viewer, groups: [all]}]
"""
ITEM = "name: a\nrepository: {url: 'https://git.example.com/a.git', tls: {caFile: %s}}\nnamespaces: [a]\n"


def test_included_files_and_named_ones_are_packed_at_their_places(tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    metrics = "prometheus: [{url: 'https://prometheus.example.com', caFile: metrics.pem}]\n"
    (tmp_path / "mine.yaml").write_text(HEAD + metrics + SIGN_IN)
    charts = "charts: [{url: 'https://charts.example.com/', caFile: charts.pem}]\n"
    (tmp_path / "targets" / "a.yaml").write_text(ITEM % "ca.pem" + charts)
    (tmp_path / "ca.pem").write_text("an authority")
    (tmp_path / "metrics.pem").write_text("another")
    (tmp_path / "charts.pem").write_text("a third")
    (tmp_path / "login.pem").write_text("a fourth")
    settings, files = settings_of(tmp_path / "mine.yaml")
    assert [target.name for target in settings.targets] == ["a"]
    assert set(files) == {"anneal.yaml", "targets/a.yaml", "ca.pem", "metrics.pem", "charts.pem", "login.pem"}


@pytest.mark.parametrize("name", ["/etc/ssl/ca.pem", "../ca.pem"])
def test_a_file_elsewhere_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "targets").mkdir()
    (tmp_path / "mine.yaml").write_text(HEAD)
    (tmp_path / "targets" / "a.yaml").write_text(ITEM % name)
    with pytest.raises(ConfigInvalid, match="lies outside the configuration's directory"):
        settings_of(tmp_path / "mine.yaml")
