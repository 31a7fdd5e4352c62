"""Where secrets, clusters and queues are found: what is accepted, and the words for what isn't."""

from __future__ import annotations

from handler.config.git_settings import AwsSecret, SecretRef
from handler.config.load import parse
from tests.unit.config.config_mistakes import HEAD, TARGET, mistakes
from tests.unit.rows import each_row

PLACES = "expected exactly one of env, file, awsSecretsManager, awsParameter, kubernetesSecret, found"


@each_row(
    ("ref", "expected"),
    [
        ("{}", f": {PLACES} none"),
        ("{env: A, file: b}", f": {PLACES} env and file"),
        ("{kubernetesSecret: a/b/c, awsParameter: d}", f": {PLACES} awsParameter and kubernetesSecret"),
        ("{awsSecretsManager: {key: a}}", ".awsSecretsManager.id: is required and missing; add `id: anneal/webhook`"),
        ("{awsSecretsManager: CANARY}", ".awsSecretsManager: expected a mapping, found text"),
        (
            "{awsSecretsManager: {id: CANARY hunter}}",
            ".awsSecretsManager.id: expected the name or ARN of an AWS secret, found something else",
        ),
        ("{awsParameter: CANARY hunter}", ".awsParameter: expected the name or ARN of a parameter, found something else"),
        ("{kubernetesSecret: CANARY}", ".kubernetesSecret: expected <namespace>/<name>/<key> of a Secret, found something else"),
    ],
)
def test_a_secret_stands_in_one_place(ref: str, expected: str) -> None:
    found = mistakes(f"{TARGET}webhooks: {{github: {{secrets: [{ref}]}}}}\n")
    assert [each.partition(": ")[2] for each in found] == [f"webhooks.github.secrets[0]{expected}"]
    assert "CANARY" not in "".join(found)


@each_row(
    ("cluster", "expected"),
    [
        ("{kubeconfig: {}}", f".kubeconfig: {PLACES} none"),
        ("{inCluster: true, context: a}", ".inCluster: inCluster and context exclude each other; remove `context` or `inCluster`"),
        ("{eks: {cluster: prod}, inCluster: true}", ".eks: eks and inCluster exclude each other; remove `inCluster` or `eks`"),
        ("{eks: {cluster: prod}, kubeconfig: {env: K}}", ".eks: eks and kubeconfig exclude each other; remove `kubeconfig` or `eks`"),
        ("{eks: {cluster: prod, role: anneal}}", '.eks.role: expected the ARN of a role, found "anneal"'),
        ("{eks: {cluster: prod, region: Frankfurt}}", '.eks.region: expected an AWS region, found "Frankfurt"'),
        ("{eks: {cluster: ../x}}", '.eks.cluster: expected the name of an EKS cluster, found "../x"'),
    ],
)
def test_a_cluster_is_found_in_one_way(cluster: str, expected: str) -> None:
    assert mistakes(f"{TARGET}    cluster: {cluster}") == [f"a.yaml:7: targets[shop].cluster{expected}"]


def named(name: str, former: str) -> str:
    repository = "{url: https://git.example.com/acme/shop.git}"
    return f"  - {{name: {name}, renamedFrom: {former}, repository: {repository}, namespaces: [shop]}}\n"


@each_row(
    ("text", "expected"),
    [
        (f"{HEAD}targets:\n{named('a', 'a')}", "renamedFrom: is its own name, a"),
        (
            f"{HEAD}targets:\n{named('a', 'b')}{named('b', 'c')}",
            "a.yaml:4: targets[a].renamedFrom: a is renamedFrom b, and a target b is configured",
        ),
        (f"{HEAD}targets:\n{named('a', 'x')}{named('b', 'x')}", "a.yaml:5: targets[b].renamedFrom: a and b are both renamedFrom x"),
        (f"{HEAD}stateNamespaceFrom: anneal-system\ntargets: []\n", "stateNamespaceFrom: is stateNamespace, anneal-system"),
        (f"{HEAD}installationFrom: default\ntargets: []\n", "installationFrom: is installation, default"),
    ],
)
def test_what_was_before_is_another_and_goes_to_one_target(text: str, expected: str) -> None:
    (found,) = mistakes(text)
    assert expected in found


@each_row(
    ("url", "expected"),
    [
        ("https://sqs.eu-central-1.amazonaws.com/123456789012/anneal", "expected the URL of a FIFO queue, found a URL"),
        ("https://key:CANARY@sqs.example.com/1/a.fifo", "expected the URL of a FIFO queue, found a URL, which holds credentials"),
    ],
)
def test_a_queue_is_fifo(url: str, expected: str) -> None:
    (found,) = mistakes(f"{HEAD}targets: []\nqueue: {{sqs: {{url: '{url}'}}}}\n")
    assert expected in found
    assert "CANARY" not in found


@each_row(
    ("ref", "shown"),
    [
        (SecretRef(env="A"), "environment variable A"),
        (SecretRef(file="/a"), "file /a"),
        (SecretRef(aws_secrets_manager=AwsSecret("a/b")), "AWS secret a/b"),
        (SecretRef(aws_secrets_manager=AwsSecret("a/b", "c", "AWSPREVIOUS")), "AWS secret a/b, key c, AWSPREVIOUS"),
        (SecretRef(aws_parameter="/a"), "AWS parameter /a"),
        (SecretRef(kubernetes_secret="a/b/c"), "Secret a/b/c"),
    ],
)
def test_a_reference_names_its_place(ref: SecretRef, shown: str) -> None:
    assert (str(ref), ref.remote) == (shown, not (ref.env or ref.file))


TWO = (
    HEAD
    + "defaults: {repository: {url: 'https://git.example.com/shop.git'}, namespaces: [shop, jobs]}\n"
    + "targets:\n  - {name: web, exclusive: [shop]}\n"
)


@each_row(
    ("exclusive", "expected"),
    [
        ("[jobs]", "jobs is not in the whitelist; write `namespaces: [shop, jobs]`"),
        ('["*"]', 'expected a namespace: a DNS label (a-z, 0-9, -), found "*"'),
        ("[kube-system]", "kube-system is a namespace of the system, whose objects no git declares; take kube-system out"),
    ],
)
def test_an_exclusive_namespace_is_one_of_the_targets_own(exclusive: str, expected: str) -> None:
    found = mistakes(f"{TARGET}    exclusive: {exclusive}\n")
    assert any(each.startswith("a.yaml:7: targets[shop].exclusive") and each.endswith(expected) for each in found), found


def test_the_system_is_never_exclusive_whatever_the_whitelist_allows() -> None:
    (found,) = mistakes(TARGET.replace("[shop]", '"*"') + "    exclusive: [default]\n")
    assert "default is a namespace of the system" in found


def test_a_namespace_is_exclusive_to_one_target_of_a_cluster() -> None:
    (found,) = mistakes(f"{TWO}  - {{name: api, exclusive: [jobs, shop]}}\n")
    seen = "namespace shop is exclusive to target api and to target web, on one cluster; take shop out of `exclusive` of one"
    assert f"targets[api].exclusive[shop]: {seen}" in found
    assert parse(f"{TWO}  - {{name: api, exclusive: [jobs]}}\n").targets[1].exclusive == ("jobs",)
    elsewhere = parse(f"{TWO}  - {{name: api, exclusive: [shop], cluster: {{context: other}}}}\n")
    assert elsewhere.targets[1].orphan_grace == 3600.0


def test_the_namespace_of_records_is_never_exclusive() -> None:
    (found,) = mistakes(f"{TWO}stateNamespace: shop\n")
    seen = "namespace shop is exclusive to target web, and is the stateNamespace, which holds the records; take shop out"
    assert f"targets[web].exclusive[shop]: {seen}" in found


def test_an_exclusive_namespace_points_at_the_line_of_its_entry() -> None:
    (found,) = mistakes(f"{TWO}  - name: api\n    exclusive:\n      - jobs\n      - shop\n")
    assert found.startswith(f"a.yaml:{TWO.count(chr(10)) + 4}: ")
