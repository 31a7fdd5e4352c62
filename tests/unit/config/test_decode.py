"""Broken configurations and the exact words they get: the place, what was expected, what was found, the way out."""

from __future__ import annotations

import pytest

from handler.config.load import parse
from handler.config.yaml_nodes import MAX_DEPTH
from tests.unit.config.config_mistakes import HEAD, REF, SERVER, TARGET, mistakes
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

DNS = "(a-z, 0-9, -)"
DURATION = "expected a duration such as 30s, 5m or 1h30m from 1s to 8760h"
GLOB = "expected a glob inside the repository"
INSIDE = "expected a directory inside the repository"
QUOTE = "quote a value that begins with one of * & ! % @ `"
BIND = "expected host:port"
NETWORK = "expected a network or an address, e.g. 10.0.0.0/8 or fd00::/8"
TOOLS = ("flux", "argocd", "helm", "kapp", "kluctl", "kubernixos", "cli-utils", "fleet")
ADOPT = f"expected never, unowned or a list of {', '.join(TOOLS)} and ids of ApplySets"
SET = "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"
SET_ID = "expected the id of an ApplySet: applyset-, 43 of A-Z, a-z, 0-9, - and _, -v1"
KNOWN_TOOLS = f"known: {', '.join(sorted(TOOLS))}"


def test_every_mistake_is_reported_at_once_in_the_order_of_the_file() -> None:
    text = """apiVersion: anneal.dev/v1
kind: Config
intervall: 5m
leaseDuration: 5 min
targets:
  - name: shop
    repository: {url: "git://git.example.com/shop.git"}
    namespaces: [shop, Jobs]
    namespace: shop
    path: ../x
  - repository: {}
"""
    assert mistakes(text) == [
        'a.yaml:1: apiVersion: expected anneal.dev/v1alpha1, found "anneal.dev/v1"',
        "a.yaml:3: intervall: unknown key; did you mean `interval`?",
        f'a.yaml:4: leaseDuration: {DURATION}, found "5 min"',
        (
            "a.yaml:7: targets[shop].repository.url: expected an https://, http:// or ssh:// URL, found a URL, which has another scheme "
            "or none; write https://<host>/<path> or ssh://git@<host>/<path>"
        ),
        f'a.yaml:8: targets[shop].namespaces[1]: expected a namespace: a DNS label {DNS}, found "Jobs"',
        (
            'a.yaml:10: targets[shop].path: expected a directory inside the repository, found "../x", which holds `..`; '
            "a path never leaves the repository"
        ),
        "a.yaml:11: targets[1].name: is required and missing; add `name: shop-prod`",
        "a.yaml:11: targets[1].namespaces: is required and missing; add `namespaces: [shop]`",
        "a.yaml:11: targets[1].repository.url: is required and missing; add `url: https://git.example.com/acme/shop.git`",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "a.yaml:1: YAML: expected a mapping, found an empty file"),
        ("{}", "a.yaml:1: configuration: expected a configuration, found an empty mapping; run `anneal init` to write a first one"),
        ("- a", "a.yaml:1: configuration: expected a mapping, found a list"),
        ("a: [", "a.yaml:2: YAML: while parsing a flow node, did not find expected node content"),
        ("a: {b: *c}", f"a.yaml:1: YAML: found undefined alias; {QUOTE}"),
        ("a: 1\n---\nb: 2", "a.yaml:2: YAML: expected a single document in the stream, but found another document"),
        ("a: \x00", "a.yaml:1: YAML: expected UTF-8 text, found a character that YAML doesn't allow"),
        ("a: \ud800", "a.yaml:1: YAML: expected UTF-8 text, found a character that YAML doesn't allow"),
        ("a: " + "[" * MAX_DEPTH, f"a.yaml:1: YAML: deeper than a configuration may be ({MAX_DEPTH} levels)"),
        ("[" * 60_000, f"a.yaml:1: YAML: deeper than a configuration may be ({MAX_DEPTH} levels)"),
        ("a: &a [*a]", f"a.yaml:1: YAML: deeper than a configuration may be ({MAX_DEPTH} levels)"),
        (
            "\n".join([f"x{i}: &x{i} [[[[[*x{i - 1}]]]]]" if i else "x0: &x0 []" for i in range(10)]),
            f"a.yaml:7: YAML: deeper than a configuration may be ({MAX_DEPTH} levels)",
        ),
        (
            "\n".join(["x0: &x0 [a, a]", *(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 10)}]" for i in range(1, 9))]),
            "a.yaml:6: YAML: larger than a configuration may be (100000 values, aliases expanded)",
        ),
        ("a: [" + "x, " * 200_000 + "]", "a.yaml:1: YAML: larger than a configuration may be (100000 values, aliases expanded)"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_yaml_that_is_no_configuration(text: str, expected: str) -> None:
    assert mistakes(text) == [expected]


@each_row(
    ("line", "expected"),
    [
        ("kind: Config", "kind: written twice, first in line 2"),
        (
            "1: 2",
            (
                "1: unknown key; known: apiVersion, defaults, driftInterval, healthCheckExprs, healthInterval, include, installation, "
                "installationFrom, interval, kind, leaseDuration, metrics, page, prometheus, queue, replay, secretsInterval, "
                "stateNamespace, stateNamespaceFrom, targets, webhooks"
            ),
        ),
        ("[a]: 2", "configuration: expected a name as key, found a list"),
        (
            "<<: {interval: 5m}",
            (
                "<<: unknown key; known: apiVersion, defaults, driftInterval, healthCheckExprs, healthInterval, include, installation, "
                "installationFrom, interval, kind, leaseDuration, metrics, page, prometheus, queue, replay, secretsInterval, "
                "stateNamespace, stateNamespaceFrom, targets, webhooks"
            ),
        ),
        ("interval: 0", f"interval: {DURATION}, found 0"),
        ("interval: -5m", f'interval: {DURATION}, found "-5m"'),
        ("interval: 999ms", f'interval: {DURATION}, found "999ms"'),
        ('interval: ""', f'interval: {DURATION}, found ""'),
        ("interval: 1:30", f"interval: {DURATION}, found 1:30"),
        ("interval: .inf", f"interval: {DURATION}, found .inf"),
        ("interval: 1e99", f'interval: {DURATION}, found "1e99"'),
        ("interval: 9000h", f'interval: {DURATION}, found "9000h"'),
        ("interval: null", f"interval: {DURATION}, found nothing"),
        ("interval: [5m]", f"interval: {DURATION}, found a list"),
        ("interval: " + "9" * 5000, f"interval: {DURATION}, found {'9' * 57}..."),
        (
            "installation: 12",
            f'installation: expected a DNS label of at most 56 characters {DNS}, found 12, which YAML reads as a number; write "12"',
        ),
        (
            "installation: yes",
            f'installation: expected a DNS label of at most 56 characters {DNS}, found yes, which YAML reads as true or false; write "yes"',
        ),
        (
            "installation: 2026-01-01",
            (
                f"installation: expected a DNS label of at most 56 characters {DNS}, found 2026-01-01, which YAML "
                'reads as a date; write "2026-01-01"'
            ),
        ),
        ("installation: !x y", f"installation: expected a DNS label of at most 56 characters {DNS}, found a tag"),
        ("webhooks: !!python/object:os.system {}", f"webhooks: expected a mapping, found a tag; {QUOTE}"),
        ("webhooks: {gitae: {}}", "webhooks.gitae: unknown key; did you mean `gitea`?"),
        ("webhooks: {github: {secrets: {env: A}}}", "webhooks.github.secrets: expected a list, found a mapping"),
        ("replay: {tokens: [{name: ci}]}", "replay.tokens[ci].secret: is required and missing; add `secret:`"),
        (
            "replay: {tokens: [{name: ci, secret: {env: A}, may: [replya]}]}",
            'replay.tokens[ci].may[0]: expected one of replay, approve, rollback, read, metrics, found "replya"; did you mean `replay`?',
        ),
        (
            "replay: {tokens: [{name: ci, secret: {env: A}, may: [1]}]}",
            "replay.tokens[ci].may[0]: expected one of replay, approve, rollback, read, metrics, found a number",
        ),
        ("replay: {tokens: [{name: ci, secret: {env: A}, may: []}]}", "replay.tokens[ci].may: expected at least one, found an empty list"),
        (
            "replay: {tokens: [{name: ci, secret: {env: A}, targets: []}]}",
            "replay.tokens[ci].targets: expected at least one, found an empty list",
        ),
        (
            "replay: {tokens: [{name: ci, secret: {env: A}, targets: [shpo]}]}",
            (
                "replay.tokens[ci].targets[0]: expected a target's name or a glob of names, found \"shpo\", which isn't known here; "
                "did you mean `shop`?"
            ),
        ),
        (
            "replay: {tokens: [{name: ci, secret: {env: A}}, {name: ci, secret: {env: B}}]}",
            'replay.tokens.name: "ci" is taken, first at a.yaml:7; names are unique',
        ),
        ("webhooks: {maxBody: 4095}", "webhooks.maxBody: expected a number of bytes from 4096 to 26214400, found 4095"),
        ("webhooks: {maxBody: 5Mi}", 'webhooks.maxBody: expected a number of bytes from 4096 to 26214400, found "5Mi"'),
        ("webhooks: {trustedProxies: [10.0.0.0/33]}", f'webhooks.trustedProxies[0]: {NETWORK}, found "10.0.0.0/33"'),
        ("webhooks: {trustedProxies: [ingress]}", f'webhooks.trustedProxies[0]: {NETWORK}, found "ingress"'),
        ("webhooks: {trustedProxies: ['1::2::3/64']}", f'webhooks.trustedProxies[0]: {NETWORK}, found "1::2::3/64"'),
        ("webhooks: {azureDevops: {}}", "webhooks.azureDevops: unknown key; did you mean `azuredevops`?"),
        ("metrics: {bind: 9464}", f'metrics.bind: {BIND}, found 9464, which YAML reads as a number; write "9464"'),
        ("metrics: {bind: ':9464'}", f'metrics.bind: {BIND}, found ":9464"'),
        ("metrics: {bind: 'http://h:1'}", f'metrics.bind: {BIND}, found "http://h:1"'),
        ("metrics: {bind: 'h:65536'}", f'metrics.bind: {BIND}, found "h:65536", which has a port above 65535'),
        ("defaults: {name: x}", "defaults.name: expected settings that targets share, found a name; names belong to the targets"),
        ("defaults: {prune: {enabled: maybe}}", "defaults.prune.enabled: expected true or false, found text"),
        ("defaults: {prune: {enabled: yes}}", "defaults.prune.enabled: expected true or false, found yes"),
        ("defaults: [prune]", "defaults: expected a mapping, found a list"),
    ],
)
def test_mistakes_in_settings_of_the_installation(line: str, expected: str) -> None:
    assert mistakes(TARGET + line) == [f"a.yaml:7: {expected}"]


@each_row(
    ("line", "expected"),
    [
        ("nmespace: x", ".nmespace: unknown key; did you mean `namespace`?"),
        ("revision: {}", ".revision: expected exactly one of branch, tag, semver, commit, found none"),
        ("revision: {branch: a, tag: b}", ".revision: expected exactly one of branch, tag, semver, commit, found branch and tag"),
        ("revision: {tag: 1.10}", f'.revision.tag: {REF}, found 1.10, which YAML reads as a number; write "1.10"'),
        ("revision: {branch: -x}", f'.revision.branch: {REF}, found "-x", which begins with `-`'),
        ("revision: {branch: a..b}", f'.revision.branch: {REF}, found "a..b", which holds `..` or `@{{`'),
        ("revision: {branch: 'a@{1}'}", f'.revision.branch: {REF}, found "a@{{1}}", which holds `..` or `@{{`'),
        ("revision: {branch: '@'}", f'.revision.branch: {REF}, found "@", which names no branch or tag of its own'),
        ("revision: {branch: HEAD}", f'.revision.branch: {REF}, found "HEAD", which names no branch or tag of its own'),
        ("revision: {branch: a//b}", f'.revision.branch: {REF}, found "a//b", which has an empty part'),
        ("revision: {branch: a/}", f'.revision.branch: {REF}, found "a/", which has an empty part'),
        (
            "revision: {branch: refs/heads/a}",
            f'.revision.branch: {REF}, found "refs/heads/a", which is a full ref name; leave out `refs/heads/` or `refs/tags/`',
        ),
        ('revision: {branch: "a\\nlevel=ERROR"}', f'.revision.branch: {REF}, found "a\\nlevel=ERROR", which holds a control character'),
        ("revision: {commit: abc}", '.revision.commit: expected a full commit id: 40 (or 64) lower-case hex digits, found "abc"'),
        ("path: /etc", f'.path: {INSIDE}, found "/etc", which is absolute; paths begin at the root of the repository, without `/`'),
        ("path: a/../b", f'.path: {INSIDE}, found "a/../b", which holds `..`; a path never leaves the repository'),
        ("path: 'a\\b'", f'.path: {INSIDE}, found "a\\\\b", which holds a backslash; separate directories by `/`'),
        ('path: "a\\0"', f'.path: {INSIDE}, found "a\\u0000", which holds a control character'),
        ("namespace: other", ".namespace: other is not in the whitelist; write `namespaces: [shop, other]`"),
        (
            "clusterScoped: [namespaces]",
            '.clusterScoped[0]: expected Kind or Kind.group, e.g. Namespace or ClusterRole.rbac.authorization.k8s.io, found "namespaces"',
        ),
        (
            "impersonate: {serviceAccount: deployer}",
            '.impersonate.serviceAccount: expected <namespace>/<name> of a ServiceAccount, found "deployer"',
        ),
        ("prune: {holdAbove: {count: -1}}", ".prune.holdAbove.count: expected a whole number from 0 to 1000000000, found -1"),
        ("prune: {holdAbove: {count: 1.5}}", ".prune.holdAbove.count: expected a whole number from 0 to 1000000000, found 1.5"),
        ("prune: {holdAbove: {fraction: 30}}", ".prune.holdAbove.fraction: expected a number from 0 to 1, found 30"),
        ("prune: {holdAbove: {fraction: 30%}}", '.prune.holdAbove.fraction: expected a number from 0 to 1, found "30%"'),
        (
            "prune: {kinds: [Deployment]}",
            (
                ".prune.kinds[0]: expected one of Namespace, CustomResourceDefinition, PersistentVolume, PersistentVolumeClaim "
                '(all others need no opt-in), found "Deployment"'
            ),
        ),
        (
            "cluster: {inCluster: true, kubeconfig: {file: a}}",
            ".cluster.inCluster: inCluster and kubeconfig exclude each other; remove `kubeconfig` or `inCluster`",
        ),
        (
            "cluster: {server: prod}",
            (f".cluster.server: {SERVER}, found a URL, which has another scheme or none; write https://<host>/<path>"),
        ),
        (
            "renderer: {type: fiel}",
            '.renderer.type: expected the name of a renderer, found "fiel", which isn\'t known here; did you mean `file`?',
        ),
        (
            "renderer: {include: [../x]}",
            f'.renderer.include[0]: {GLOB}, found "../x", which holds `..`; a path never leaves the repository',
        ),
        ("ignore: [{select: {kind: Deployment}}]", ".ignore[0].paths: expected at least one, found an empty list"),
        ("ignore: [{paths: [spec.replicas]}]", '.ignore[0].paths[0]: expected a JSON pointer, e.g. /spec/replicas, found "spec.replicas"'),
        ("adopt: ever", f'.adopt: {ADOPT}, found "ever"; did you mean `never`?'),
        ("adopt: flux", f'.adopt: {ADOPT}, found "flux"; write adopt: [flux]'),
        ("adopt: [flux, argo-cd]", f'.adopt[1]: expected one of {", ".join(TOOLS)}, found "argo-cd"; did you mean `argocd`?'),
        ("adopt: [applyset-0a]", f'.adopt[0]: {SET_ID}, found "applyset-0a"'),
        (f"adopt: [flux, {SET[:-1]}]", f'.adopt[1]: {SET_ID}, found "{SET[:-1]}"'),
        (f"adopt: [flux, x{SET}]", f'.adopt[1]: expected one of {", ".join(TOOLS)}, found "x{SET}"; {KNOWN_TOOLS}'),
        (f"adopt: {SET}", f'.adopt: {ADOPT}, found "{SET}"; write adopt: [{SET}]'),
        ("adopt: []", ".adopt: expected at least one, found an empty list"),
        ("adopt: true", f".adopt: {ADOPT}, found true or false"),
        ("drift: {}", ".drift: expected one of correct, report, ignore, found a mapping"),
    ],
)
def test_mistakes_in_a_target(line: str, expected: str) -> None:
    assert mistakes(TARGET + "    " + line) == [f"a.yaml:7: targets[shop]{expected}"]


@each_row(
    ("namespaces", "expected"),
    [
        ("[]", "targets[shop].namespaces: expected at least one, found an empty list"),
        ("shop", 'targets[shop].namespaces: expected a list or "*", found text; write namespaces: [shop]'),
        ('["*", shop]', 'targets[shop].namespaces: "*" allows every namespace and stands alone; write `namespaces: "*"` or only names'),
        ("[-a]", f'targets[shop].namespaces[0]: expected a namespace: a DNS label {DNS}, found "-a"'),
        (f"[{'a' * 64}]", f'targets[shop].namespaces[0]: expected a namespace: a DNS label {DNS}, found "{"a" * 57}..."'),
        ("[1]", f'targets[shop].namespaces[0]: expected a namespace: a DNS label {DNS}, found 1, which YAML reads as a number; write "1"'),
    ],
)
def test_the_namespace_whitelist_is_written_out(namespaces: str, expected: str) -> None:
    assert mistakes(TARGET.replace("namespaces: [shop]", f"namespaces: {namespaces}")) == [f"a.yaml:6: {expected}"]


@each_row(
    ("line", "found", "fix"),
    [
        ("repository: https://h/x.git", "text", "write repository: {url: https://h/x.git}"),
        ('repository: "https://h/{x}.git"', "text", 'write repository: {url: "https://h/{x}.git"}'),
        ("repository: https://ann:CANARY@h/x.git", "text", "write it as repository: {url: https://git.example.com/acme/shop.git}"),
        ("revision: release", "text", "write revision: {branch: release}"),
        ("cluster: prod", "text", "write cluster: {context: prod}"),
        ("renderer: helm", "text", "write renderer: {type: helm}"),
        ("renderer: heml", "text", ""),
        ("wait: 5m", "text", "write wait: {timeout: 5m}"),
        ("wait: 300", "a number", "write wait: {timeout: 300}"),
        ("wait: true", "true or false", ""),
        ("prune: false", "true or false", "write prune: {enabled: false}"),
        ("prune: no", "true or false", ""),
        ("rollback: true", "true or false", "write rollback: {onFailure: true}"),
        ("impersonate: shop/deployer", "text", "write impersonate: {serviceAccount: shop/deployer}"),
        ("evidence: record", "text", "write evidence: {logs: record}"),
        ("recreate: Deployment.apps", "text", ""),
    ],
)
def test_a_mapping_that_is_written_in_short_is_written_out(line: str, found: str, fix: str) -> None:
    key, text = line.partition(":")[0], "\n".join(each for each in TARGET.splitlines() if line.partition(":")[0] not in each) + "\n    "
    way_out = f"; {fix}" if fix else ""
    assert mistakes(text + line)[-1].partition(": ")[2] == f"targets[shop].{key}: expected a mapping, found {found}{way_out}"
    if fix.startswith("write "):  # what is advised is accepted
        may_fail = "" if key == "wait" else "\n    wait: {timeout: 5m}"
        assert parse(text + fix.removeprefix("write it as ").removeprefix("write ") + may_fail, "a.yaml").targets


def test_what_is_promoted_in_short_is_written_out() -> None:
    text = TARGET + "  - {name: late, repository: {url: 'https://h/x'}, namespaces: [late], revision: {branch: main, promoted: %s}}"
    at = "a.yaml:7: targets[late].revision.promoted: expected a mapping, found text"
    assert mistakes(text % "shop") == [f"{at}; write promoted: {{from: shop}}"]


def test_mistakes_in_defaults_are_said_once_however_many_targets_there_are() -> None:
    text = HEAD + "defaults: {drfit: report, namespaces: [A]}\ntargets:\n"
    text += "".join(f"  - {{name: t{index}, repository: {{url: 'https://h/x'}}}}\n" for index in range(5))
    assert mistakes(text) == [
        "a.yaml:3: defaults.drfit: unknown key; did you mean `drift`?",
        f'a.yaml:3: defaults.namespaces[0]: expected a namespace: a DNS label {DNS}, found "A"',
    ]


def test_a_list_of_targets_is_required() -> None:
    assert mistakes(HEAD) == ["a.yaml:1: targets: is required and missing; add `targets:`"]
    assert mistakes(HEAD + "targets: shop") == ["a.yaml:3: targets: expected a list, found text"]
    assert mistakes(HEAD + "targets: [shop]") == ["a.yaml:3: targets[0]: expected a mapping, found text"]


def test_the_header_is_required() -> None:
    assert mistakes("targets: []") == [
        "a.yaml:1: apiVersion: is required and missing; add `apiVersion: anneal.dev/v1alpha1`",
        "a.yaml:1: kind: is required and missing; add `kind: Config`",
    ]
