"""What must hold between the fields of one mapping, as a table. Each rule is a pure function of the fields it names.

A rule runs as soon as its own fields are sound, so that a mistake elsewhere hides none of its findings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import get_args

from handler.config import cel
from handler.config.decryption import Decryption
from handler.config.feedback_settings import FeedbackSettings, GitHostName
from handler.config.git_settings import Promoted, Repository, RepositoryAuth, Revision, SecretRef, Verify
from handler.config.page_settings import PageOidc, PageProxy, PageSettings, PageToken, RoleBinding
from handler.config.post_build import PostBuild
from handler.config.renderer_settings import OF_FILES, OPTIONS, Chart, ChartSource, RendererSettings
from handler.config.setting_fault import Fault, SettingRule
from handler.config.settings import (
    Cluster,
    Eks,
    HealthCheckExpr,
    IgnoreRule,
    PrometheusSettings,
    ReplayToken,
    Rollback,
    Settings,
    Target,
    Wait,
)
from handler.config.settings_shape import Json
from handler.config.trigger_rules import OF_TRIGGERS
from handler.config.trigger_settings import ResourceTrigger, WatchedResource
from handler.config.value_formats import is_glob, plain
from handler.model.advice import advice
from handler.model.to_json import camel


def one_of(*names: str, least: int = 1) -> Callable[..., Iterator[Fault]]:
    """Exactly one of the fields is written, or at most one (`least` 0)."""

    def check(*values: object) -> Iterator[Fault]:
        found = [name for name, value in zip(names, values, strict=True) if value]
        if not least <= len(found) <= 1:
            bound = "exactly" if least else "at most"
            yield Fault("", f"expected {bound} one of {', '.join(names)}, found {' and '.join(found) or 'none'}")

    return check


def one_revision(branch: str, tag: str, semver: str, commit: str, promoted: Promoted | None) -> Iterator[Fault]:
    """Exactly one is written; what is promoted is a commit of the branch, main unless one is written."""
    if promoted is None:
        yield from one_of("branch", "tag", "semver", "commit")(branch, tag, semver, commit)
    for name, value in (("tag", tag), ("semver", semver), ("commit", commit)):
        if promoted is not None and value:
            fix = f"remove `{name}`, or write `branch` in its place: only commits of the branch are promoted"
            yield Fault(name, f"{name} and promoted exclude each other", fix)


def named_elsewhere(names: tuple[str, ...], cluster: Cluster | None, state_namespace: str, installation: str) -> Iterator[Fault]:
    """Some target proves commits; those of another installation aren't known here, so that a glob matches none."""
    if not names:
        yield Fault("from_", "expected at least one target, found an empty list", "write `from: shop-staging`")
    globs = [name for name in names if is_glob(name)]
    if globs and (cluster or state_namespace or installation):
        yield Fault("from_", f"{globs[0]} is a glob, and the targets of another installation aren't known here", "name each of them")


def some(name: str) -> Callable[..., Iterator[Fault]]:
    """The list isn't empty."""

    def check(values: tuple[str, ...]) -> Iterator[Fault]:
        if not values:
            yield Fault(name, "expected at least one, found an empty list")

    return check


def one_cluster(kubeconfig: SecretRef | None, context: str, in_cluster: bool, eks: Eks | None) -> Iterator[Fault]:
    """The pod's own service account and a cluster of EKS need no kubeconfig, no context, nor each other."""
    given = {"eks": eks, "in_cluster": in_cluster, "kubeconfig": kubeconfig, "context": context}
    first, *others = [name for name, value in given.items() if value] or [""]
    if first in ("eks", "in_cluster") and others:
        mine, other = camel(first), camel(others[0])
        yield Fault(first, f"{mine} and {other} exclude each other", f"remove `{other}` or `{mine}`")


def star_alone(namespaces: tuple[str, ...]) -> Iterator[Fault]:
    """`*` allows everything, so a name beside it is a misunderstanding."""
    if "*" in namespaces and len(namespaces) > 1:
        yield Fault("namespaces", '"*" allows every namespace and stands alone', 'write `namespaces: "*"` or only names')


def inside(namespace: str, namespaces: tuple[str, ...]) -> Iterator[Fault]:
    """The namespace of objects that name none is one of the allowed."""
    if namespace and "*" not in namespaces and namespace not in namespaces:
        allowed = [*namespaces, namespace]
        yield Fault("namespace", f"{namespace} is not in the whitelist", advice("write `namespaces: {yaml}`", allowed))


def exclusive_inside(exclusive: tuple[str, ...], namespaces: tuple[str, ...]) -> Iterator[Fault]:
    """What may be emptied is in the whitelist, and no namespace of the system."""
    for name in exclusive:
        if "*" not in namespaces and name not in namespaces:
            allowed = [*namespaces, name]
            yield Fault("exclusive", f"{name} is not in the whitelist", advice("write `namespaces: {yaml}`", allowed), (name,))
        if name == "default" or name.startswith("kube-"):
            yield Fault("exclusive", f"{name} is a namespace of the system, whose objects no git declares", f"take {name} out", (name,))


def exclusive_once(targets: tuple[Target, ...], state_namespace: str) -> Iterator[Fault]:
    """Of two targets with the same exclusive namespace each would delete what the other has not applied yet; records are never emptied."""
    first: dict[tuple[Cluster, str], str] = {}
    for target in targets:
        for name in dict.fromkeys(target.exclusive):
            other = first.setdefault((replace(target.cluster, server=""), name), target.name)
            if other != target.name:
                seen = f"namespace {name} is exclusive to target {target.name} and to target {other}, on one cluster"
                yield Fault("targets", seen, f"take {name} out of `exclusive` of one of the two", (target.name, "exclusive", name))
            if name == state_namespace:
                seen = f"namespace {name} is exclusive to target {target.name}, and is the stateNamespace, which holds the records"
                fix = f"take {name} out of `exclusive` of target {target.name}, or write another stateNamespace"
                yield Fault("targets", seen, fix, (target.name, "exclusive", name))


def fits_scheme(url: str, auth: RepositoryAuth) -> Iterator[Fault]:
    """A key is for ssh://, where nothing works without one; the others are for HTTP."""
    if url.startswith("ssh://") and not auth.ssh:
        block = "auth: {ssh: {privateKey: {file: /run/secrets/key}, knownHosts: /etc/anneal/known_hosts}}"
        yield Fault("auth", "an ssh:// URL needs a key", f"add `{block}`")
    if not url.startswith("ssh://") and auth.ssh:
        yield Fault("auth", "auth.ssh is for ssh:// URLs", "write the URL as ssh://git@<host>/<path>")


def feedback_signs_in(token: SecretRef | None, github_app: object) -> Iterator[Fault]:
    """What writes statuses is not what reads git."""
    if not token and not github_app:
        seen = "is required: what may read git need not write, so it isn't taken for this"
        yield Fault("token", seen, "add `token: {env: GIT_STATUS_TOKEN}`, or `githubApp: …`")
    yield from one_of("token", "githubApp", least=0)(token, github_app)


def feedback_host_known(url: str, feedback: FeedbackSettings | None) -> Iterator[Fault]:
    """The host's own API is spoken; an App is GitHub's alone."""
    host = feedback.host_of(url) if feedback else ""
    if feedback and not host:
        hosts = ", ".join(each for each in get_args(GitHostName) if each)
        yield Fault("feedback", "the URL doesn't show which git host it is", f"add `host: …` to it, one of {hosts}", ("host",))
    if feedback and feedback.github_app and host not in ("", "github"):
        yield Fault("feedback", f"githubApp is GitHub's, and the host is {host}", "write `token: …` in its place", ("githubApp",))


def any_key(ssh: tuple[str, ...], pgp: tuple[str, ...]) -> Iterator[Fault]:
    """A verification without keys would refuse every commit."""
    if not ssh and not pgp:
        yield Fault("", "expected at least one key in ssh or pgp, found none")


def any_decryption_key(age: tuple[SecretRef, ...], kms: tuple[str, ...]) -> Iterator[Fault]:
    """Without keys every encrypted file is refused, as without the block."""
    if not age and not kms:
        yield Fault("", "expected at least one key in age or kms, found none", "add `age: [{file: /etc/anneal/age.txt}]`")


def fails_at_all(rollback: Rollback, wait: Wait | None, rollout: str) -> Iterator[Fault]:
    """Nothing that isn't waited for fails, so that nothing would ever be rolled back."""
    if rollback.on_failure and wait is None and not rollout:
        yield Fault("rollback", "onFailure needs something that can fail", "add `wait: {timeout: 5m}`, or a `rollout`")


def compiles(name: str) -> Callable[..., Iterator[Fault]]:
    """CEL's own compiler takes the expression."""

    def check(expression: str) -> Iterator[Fault]:
        wrong = cel.complaint(expression) if expression else ""
        if wrong:
            yield Fault(name, f"CEL can't read it: {wrong}", cel.FIX)

    return check


def each_kind_once(entries: tuple[HealthCheckExpr, ...]) -> Iterator[Fault]:
    """Of two entries for the same kind one would never be asked; versions of a group are the same kind."""
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        if str(entry) in seen:
            yield Fault("health_check_exprs", f"entry {index} is a second one for {entry}", "leave one: versions of a group are one")
        seen.add(str(entry))


def options_fit(kind: str, *values: object) -> Iterator[Fault]:
    """Each option is one of the chosen renderer's: one that does nothing is a misunderstanding."""
    blank = RendererSettings()
    for name, value in zip(_OPTIONS, values, strict=True):
        owner = next(each for each, names in _OWNERS.items() if name in names)
        fits = kind == owner if owner else kind not in OPTIONS
        if value != getattr(blank, name) and not fits:
            away = "remove it; what belongs to the render is said by the tool's own files"
            way = advice("write `type: {yaml}` beside it", owner) if owner else away
            yield Fault(name, f"is an option of {owner or 'file'}, and type is {kind}", way)


def one_chart(oci: str, repository: str, name: str) -> Iterator[Fault]:
    """A chart is in a registry, or has a name in a repository."""
    if bool(oci) == bool(repository):
        yield Fault("", f"expected oci or repository, found {'both' if oci else 'none'}")
    elif bool(repository) != bool(name):
        yield Fault("name", "a repository and a name belong together", "write `repository` and `name`, or `oci` alone")


def nix_directories(nix_path: Json) -> Iterator[Fault]:
    """`<name>` is a word, and what it stands for is a directory of the machine."""
    for name, path in json.loads(nix_path or "{}").items():
        if not _NIX_NAME.fullmatch(name):
            yield Fault("nix_path", f"the name {plain(name)} can't be written in <…>", "write {nixpkgs: /opt/nixpkgs}")
        elif not (isinstance(path, str) and path.startswith("/") and path.isprintable()):
            yield Fault("nix_path", f"{name} is no absolute path", "write {nixpkgs: /opt/nixpkgs}")


def values_have_namespace(renderer: RendererSettings, namespace: str) -> Iterator[Fault]:
    """Values of the cluster are read in the target's namespace."""
    if renderer.values_from and not namespace:
        yield Fault("namespace", "renderer.valuesFrom is read in the target's namespace, and none is written", "add `namespace: …`")


def variables_are_texts(substitute: str) -> Iterator[Fault]:
    """Flux' rules for variables: their names are words, their values texts."""
    for name, value in json.loads(substitute or "{}").items():
        if not _VARIABLE.fullmatch(name):
            yield Fault("substitute", f"{name!r:.80} is no name of a variable", "write A-Z, a-z, 0-9 and _, no digit first")
        elif not isinstance(value, str):
            yield Fault("substitute", f"the value of {name} is no text", f'write {name}: "…", in quotes')


def variables_have_namespace(post_build: PostBuild | None, namespace: str) -> Iterator[Fault]:
    """Variables of the cluster are read in the target's namespace."""
    if post_build and post_build.substitute_from and not namespace:
        yield Fault("namespace", "postBuild.substituteFrom is read in the target's namespace, and none is written", "add `namespace: …`")


def proxy_has_secret(secret: SecretRef | None) -> Iterator[Fault]:
    """Headers alone prove nothing: all that reach the port can send them."""
    if secret is None:
        seen = "is required: without it all that reach the port could say who they are"
        yield Fault("secret", seen, "add `secret: {env: ANNEAL_PROXY_SECRET}`, and let the proxy send it: see docs/page.md")


def headers_differ(*names: str) -> Iterator[Fault]:
    """One header can't be two things."""
    for index, name in enumerate(names):
        if name.lower() in (each.lower() for each in names[:index]):
            yield Fault(("secret_header", "user_header", "groups_header")[index], f"{name} is named twice", "name a header for each")


def can_sign_in(proxy: PageProxy | None, oidc: PageOidc | None, tokens: tuple[PageToken, ...]) -> Iterator[Fault]:
    """A page without a way to sign in is a mistake."""
    if not (proxy or oidc or tokens):
        block = "tokens: [{name: ada, secret: {env: ANNEAL_TOKEN_ADA}, groups: [platform]}]"
        yield Fault("", "expected a way to sign in (proxy, oidc or tokens), found none", f"add `{block}`")


def any_role(roles: tuple[RoleBinding, ...]) -> Iterator[Fault]:
    """Without roles the page shows nothing."""
    if not roles:
        yield Fault("roles", "expected at least one row, found none: the page would show nothing", f"add `roles: [{_ROLE}]`")


def binds(groups: tuple[str, ...], users: tuple[str, ...]) -> Iterator[Fault]:
    """A row that names no group and no user is a mistake."""
    if not groups and not users:
        yield Fault("", "expected groups or users, found none: the row gives its role to no person", "add `groups: [platform]`")


def asks_openid(scopes: tuple[str, ...]) -> Iterator[Fault]:
    """Without this scope a provider gives no ID token."""
    if "openid" not in scopes:
        yield Fault("scopes", "openid is missing", advice("write `scopes: {yaml}`", ["openid", *scopes]))


def other_name(name: str, renamed_from: str) -> Iterator[Fault]:
    """A target that was renamed had another name."""
    if renamed_from and renamed_from == name:
        yield Fault("renamed_from", f"is its own name, {name}", "write the name that it had before, or remove the line")


def other_than(name: str) -> Callable[[str, str], Iterator[Fault]]:
    """What a setting was before is another value."""

    def check(now: str, before: str) -> Iterator[Fault]:
        if before and before == now:
            yield Fault(f"{name}_from", f"is {camel(name)}, {now}", "write the one before, or remove the line")

    return check


def renamed_once(targets: tuple[Target, ...]) -> Iterator[Fault]:
    """What a record has goes to one target, and to none while a target of that name is configured."""
    names, takers = {target.name for target in targets}, dict[str, str]()
    for target in targets:
        former, within = target.renamed_from, (target.name, "renamedFrom")
        if former and former != target.name and former in names:
            yield Fault("targets", f"{target.name} is renamedFrom {former}, and a target {former} is configured", "remove either", within)
        if former and former in takers:
            seen = f"{takers[former]} and {target.name} are both renamedFrom {former}"
            yield Fault("targets", seen, "leave the line on one of them", within)
        takers.setdefault(former, target.name)


_ROLE = '{role: operator, groups: [platform], targets: ["*"]}'
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWNERS: dict[str, tuple[str, ...]] = {"": OF_FILES, **OPTIONS}
_OPTIONS = tuple(name for names in _OWNERS.values() for name in names)

_NIX_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

SOME = (
    (IgnoreRule, "paths"),
    (ReplayToken, "targets"),
    (ReplayToken, "may"),
    (RoleBinding, "targets"),
    (Target, "namespaces"),
    (Target, "adopt"),
    (ResourceTrigger, "resources"),
)
"""Lists that hold at least one item."""
PLACES = ("env", "file", "aws_secrets_manager", "aws_parameter", "kubernetes_secret")

RULES = (
    SettingRule(RepositoryAuth, ("basic", "ssh", "github_app"), one_of("basic", "ssh", "githubApp", least=0)),
    SettingRule(Repository, ("url", "auth"), fits_scheme),
    SettingRule(Repository, ("url", "feedback"), feedback_host_known),
    SettingRule(FeedbackSettings, ("token", "github_app"), feedback_signs_in),
    SettingRule(Verify, ("ssh", "pgp"), any_key),
    SettingRule(Decryption, ("age", "kms"), any_decryption_key),
    SettingRule(SecretRef, PLACES, one_of(*map(camel, PLACES))),
    SettingRule(Revision, ("branch", "tag", "semver", "commit", "promoted"), one_revision),
    SettingRule(Promoted, ("from_", "cluster", "state_namespace", "installation"), named_elsewhere),
    SettingRule(Cluster, ("kubeconfig", "context", "in_cluster", "eks"), one_cluster),
    *(SettingRule(cls, (name,), some(name)) for cls, name in SOME),
    *(SettingRule(HealthCheckExpr, (name,), compiles(name)) for name in ("in_progress", "failed", "current")),
    SettingRule(RendererSettings, ("type", *_OPTIONS), options_fit),
    SettingRule(RendererSettings, ("nix_path",), nix_directories),
    SettingRule(RendererSettings, ("config", "config_file"), one_of("config", "configFile", least=0)),
    SettingRule(Chart, ("oci", "repository", "name"), one_chart),
    SettingRule(Target, ("renderer", "namespace"), values_have_namespace),
    SettingRule(PostBuild, ("substitute",), variables_are_texts),
    SettingRule(Target, ("post_build", "namespace"), variables_have_namespace),
    SettingRule(Settings, ("health_check_exprs",), each_kind_once),
    SettingRule(Settings, ("installation", "installation_from"), other_than("installation")),
    SettingRule(Settings, ("state_namespace", "state_namespace_from"), other_than("state_namespace")),
    SettingRule(Settings, ("targets",), renamed_once),
    SettingRule(Target, ("name", "renamed_from"), other_name),
    SettingRule(Target, ("health_check_exprs",), each_kind_once),
    SettingRule(Target, ("namespaces",), star_alone),
    SettingRule(Target, ("namespace", "namespaces"), inside),
    SettingRule(Target, ("exclusive", "namespaces"), exclusive_inside),
    SettingRule(Settings, ("targets", "state_namespace"), exclusive_once),
    SettingRule(Target, ("rollback", "wait", "rollout"), fails_at_all),
    *OF_TRIGGERS,
    SettingRule(PageProxy, ("secret",), proxy_has_secret),
    SettingRule(PageProxy, ("secret_header", "user_header", "groups_header"), headers_differ),
    SettingRule(PageOidc, ("scopes",), asks_openid),
    SettingRule(PageSettings, ("proxy", "oidc", "tokens"), can_sign_in),
    SettingRule(PageSettings, ("roles",), any_role),
    SettingRule(RoleBinding, ("groups", "users"), binds),
)

UNIQUE: dict[type, str] = {
    Target: "name",
    ReplayToken: "name",
    PageToken: "name",
    PrometheusSettings: "url",
    ChartSource: "url",
    WatchedResource: "name",
}
"""Lists of these hold no two items with the same value of that key."""
