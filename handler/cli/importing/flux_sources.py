"""Flux' sources -> the parts of a target: `GitRepository` is its repository, the others say where a chart comes from.

Law: pure. A Secret is named, never read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from handler.cli.importing.custom_resource import CustomResource, Lost, Rows, SourceField
from handler.cli.importing.references import put_repository
from handler.cli.importing.target_draft import HOME_CLUSTER, NotATarget, TargetDraft, judged
from handler.config.git_settings import token_user
from handler.model.advice import advice

POLLED = "webhooks and one `interval` for all targets say when git is looked at"
LIMITED = "Anneal has time-outs of its own for git hosts and registries"
CREDENTIALS = "is no user name and password in a Secret; Anneal signs in by `auth`: see docs/git-access.md"
UNSIGNED = "the trusted keys stand in a Secret, which import doesn't read; write them: verify: {pgp: [<armored keys>]} or {ssh: [<keys>]}"
_NO_CHART_SIGNATURE = "signatures of charts aren't verified; pin the bytes instead: renderer.chart.digest"
_HEAD = re.compile(r"refs/heads/(.+)")
_TAG = re.compile(r"refs/tags/(.+)")

GIT_ROWS: Rows = {
    "interval": POLLED,
    "timeout": LIMITED,
    "gitImplementation": "there is one implementation",
    "accessFrom": "a target names its repository itself",
    "sparseCheckout": "only what the target's path needs is rendered",
    "ignore": Lost("is in Flux' object alone; commit it as .annealignore below the path", halts=True),
    "include": Lost("a target has one repository; write a target for each, or commit the files", halts=True),
    "recurseSubmodules": Lost("submodules aren't followed; commit their files", halts=True),
    "proxySecretRef": Lost("a proxy is named by the environment: HTTPS_PROXY"),
    "serviceAccountName": Lost(CREDENTIALS),
}
_CHART_ROWS: Rows = {
    "interval": "a range of versions is resolved once a commit",
    "timeout": LIMITED,
    "accessFrom": "a target names its sources itself",
    "verify": Lost(_NO_CHART_SIGNATURE, halts=True),
    "serviceAccountName": Lost(CREDENTIALS),
    "proxySecretRef": Lost("a proxy is named by the environment: HTTPS_PROXY"),
    "insecure": Lost("oci:// is asked over TLS; a repository without it is written http://"),
    "passCredentials": Lost("credentials go to their own prefix only; write a second entry of `charts` for the other host"),
}
_OCI_ROWS: Rows = {
    **_CHART_ROWS,
    "layerSelector": "a chart's own layer is taken",
    "ignore": Lost("a chart is rendered whole"),
    "ref.semverFilter": Lost("write a range that names the versions: renderer.chart.version", halts=True),
    "ref.digest": Lost("is the manifest's digest; pin that of the chart's archive: renderer.chart.digest", halts=True),
}


def git_part(source: CustomResource) -> TargetDraft:
    """Return repository, revision and trust of a GitRepository. Raises NotATarget: its URL or revision can't be followed."""
    part, spec = TargetDraft([source]), source.fields.at("spec")
    url = put_repository(part, spec.at("url"))
    _put_revision(part, spec.at("ref"))
    _put_git_secret(part, spec.at("secretRef"), url)
    _put_provider(spec)
    spec.at("verify").lost(UNSIGNED, halts=True)
    put_suspend(part, spec)
    spec.rows(GIT_ROWS)
    return part


def put_suspend(part: TargetDraft, spec: SourceField) -> None:
    """Take over a pause."""
    if spec.at("suspend").flag():
        part.take(spec.at("suspend"), "suspend", value=True)
    spec.at("suspend").itself("isn't suspended")


def _put_provider(spec: SourceField) -> None:
    name = spec.at("provider").text()
    if name in ("", "generic"):
        spec.at("provider").itself("is the default")
    elif name == "github":
        way = "write auth: {githubApp: {appId: …, installationId: …, privateKey: …}}; the Secret holds the three"
        spec.at("provider").lost(f"the values stand in a Secret, which import doesn't read; {way}")
    else:
        spec.at("provider").lost(CREDENTIALS)


def _put_revision(part: TargetDraft, ref: SourceField) -> None:
    """Take over what Flux would check out: commit above name, semver, tag and branch; `master` where nothing is written."""
    ways: dict[str, Callable[[str], tuple[str, str, str]]] = {
        "commit": lambda text: ("commit", text, "sha"),
        "name": _by_name,
        "semver": lambda text: ("semver", plain_range(text), "semver"),
        "tag": lambda text: ("tag", text, "ref"),
        "branch": lambda text: ("branch", text, "ref"),
    }
    written = [name for name in ways if ref.at(name).text()]
    for name in written[1:]:
        ref.at(name).itself(f"`{written[0]}` stands above it")
    if not written:
        part.put("revision", {"branch": "master"})
        part.sources[0].fields.at("spec", "url").set("revision.branch", "no `ref` is written: source-controller's default is master")
        return
    key, value, kind = ways[written[0]](ref.at(written[0]).text())
    if not part.take(ref.at(written[0]), f"revision.{key}", value, kind):
        raise NotATarget("has a revision that can't be followed")


def _by_name(text: str) -> tuple[str, str, str]:
    if found := _TAG.fullmatch(text):
        return "tag", found[1], "ref"
    found = _HEAD.fullmatch(text)
    return "branch", found[1] if found else text, "ref"


def plain_range(text: str) -> str:
    """Return a range of versions as the configuration writes it: no commas, no space after an operator, no `v`."""
    spaced = re.sub(r"\s*,\s*", " ", text.strip())
    return re.sub(r"(?<![0-9A-Za-z.-])v(?=[0-9])", "", re.sub(r"([<>=^~]) +", r"\1", spaced))


def _put_git_secret(part: TargetDraft, ref: SourceField, url: str) -> None:
    name, namespace = ref.at("name").text(), part.sources[0].namespace
    held = f"{namespace}/{name}"
    if url.startswith("ssh://"):
        known = f"{HOME_CLUSTER}; known_hosts: {_reading(name, namespace, 'known_hosts')} > /etc/anneal/known_hosts"
        key = {"kubernetesSecret": f"{held}/identity"} if name else {"env": "GIT_SSH_KEY"}
        part.put("repository.auth", {"ssh": {"privateKey": key, "knownHosts": "/etc/anneal/known_hosts"}})
        ref.at("name").set("repository.auth.ssh", known)
    elif name:
        password = {"kubernetesSecret": f"{held}/password"}
        user = f"{HOME_CLUSTER}; user name: {_reading(name, namespace, 'username')}"
        if part.take(ref.at("name"), "repository.auth.basic.password.kubernetesSecret", f"{held}/password", "kubernetesSecret", user):
            part.put("repository.auth", {"basic": {"username": token_user(url), "password": password}})


def _reading(name: str, namespace: str, key: str) -> str:
    return advice("kubectl get {} -n {} -o jsonpath={} | base64 -d", f"secret/{name}", namespace, f"{{.data.{key}}}")


def helm_repository_part(source: CustomResource, name: str, version: SourceField) -> TargetDraft:
    """Return chart and chart source of a chart's name in a HelmRepository. Raises NotATarget."""
    part, spec = TargetDraft([source]), source.fields.at("spec")
    url, kind = spec.at("url").text().rstrip("/"), spec.at("type").text()
    spec.at("type").itself("is said by the URL's scheme")
    wanted = version.text() or "*"
    if kind == "oci" or url.startswith("oci://"):
        found = part.take(spec.at("url"), "renderer.chart.oci", f"{url}/{name}", "ociUrl")
    else:
        found = part.take(spec.at("url"), "renderer.chart.repository", url, "chartUrl")
        part.put("renderer.chart.name", name)
    if not found or not part.take(version, "renderer.chart.version", wanted, "chartVersion"):
        raise NotATarget("has a chart that can't be named in a configuration")
    _put_source(part, spec, url)
    return part


def oci_repository_part(source: CustomResource) -> TargetDraft:
    """Return chart and chart source of an OCIRepository that holds a chart. Raises NotATarget."""
    part, spec = TargetDraft([source]), source.fields.at("spec")
    url = spec.at("url").text()
    version = next((each for each in (spec.below("ref.semver"), spec.below("ref.tag")) if each.text()), None)
    if version is None:
        raise NotATarget("names no version: write one as ref.tag or ref.semver, for a chart's version is required")
    if version.path[-1] == "semver":
        spec.below("ref.tag").itself("`semver` stands above it")
    named = part.take(spec.at("url"), "renderer.chart.oci", url, "ociUrl")
    if not named or not part.take(version, "renderer.chart.version", version.text(), "chartVersion"):
        raise NotATarget("has a chart that can't be named in a configuration")
    _put_source(part, spec, url.rpartition("/")[0])
    spec.rows(_OCI_ROWS)
    return part


def _put_source(part: TargetDraft, spec: SourceField, url: str) -> None:
    """Allow where a chart comes from, with a place for its password."""
    source: dict[str, Any] = {"url": url}
    name, namespace = spec.below("secretRef.name").text(), part.sources[0].namespace
    if name:
        read = _reading(name, namespace, "username")
        held = f"{namespace}/{name}/password"
        where = f"{HOME_CLUSTER}; user name: {read}; a Secret of type dockerconfigjson has other keys: write what it holds"
        if judged(spec.below("secretRef.name"), "charts[0].auth", held, "kubernetesSecret", where):
            source["auth"] = {"username": "USERNAME", "password": {"kubernetesSecret": held}}
    part.put("charts", [source])
    spec.at("certSecretRef").lost("write the authority into a file, and charts: [{url: …, caFile: FILE}]; client certificates aren't sent")
    if spec.at("provider").text() in ("", "generic"):
        spec.at("provider").itself("is the default")
    else:
        spec.at("provider").lost(CREDENTIALS)
    put_suspend(part, spec)
    spec.rows(_CHART_ROWS)
