"""How a single value must look, as a table: the loader checks it and the schema prints it. A field's `kind` names its row.

Patterns are whole-value and read alike by Python and ECMA 262, so that the JSON Schema says what the loader does.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial

CONTROL = r"[\x00-\x1f\x7f-\x9f]"
LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)(?::[1-9][0-9]{0,4})?"
_USER = r"(?:[A-Za-z0-9._-]+@)?"
_PORT_TOO_HIGH = r"^[a-z]+://[^/]*:(?:6553[6-9]|655[4-9][0-9]|65[6-9][0-9]{2}|6[6-9][0-9]{3}|[7-9][0-9]{4})(?:/|$)"
_NUMBER = "(?:0|[1-9][0-9]{0,8})"
_PRE = r"-(?:0|[1-9][0-9]{0,8}|[0-9]{0,8}[A-Za-z-][0-9A-Za-z-]{0,31})(?:\.(?:0|[1-9][0-9]{0,8}|[0-9]{0,8}[A-Za-z-][0-9A-Za-z-]{0,31})){0,7}"
_WHOLE = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
_PARTS = rf"(?:{_WHOLE}|{_NUMBER}(?:\.{_NUMBER}(?:\.[x*])?|(?:\.[x*]){{1,2}})?)"
_VERSION = rf"(?:\*|(?:[<>]=?|[=^])?{_WHOLE}{_PRE}|(?:[<>]=?|[=^~])?{_PARTS})"
_SPAN = rf"(?:{_WHOLE}{_PRE}|{_PARTS}) - (?:{_WHOLE}{_PRE}|{_PARTS})"
_VERSIONS = rf"(?:{_SPAN}|{_VERSION}(?: {_VERSION}){{0,9}})"
_GROUP_KIND = rf"[A-Z][A-Za-z0-9]*(?:\.{LABEL})*"
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_V4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}(?:/(?:3[0-2]|[12]?[0-9]))?"
_HEX = "[0-9A-Fa-f]{1,4}"
_SHORTENED = "|".join(f"(?:{_HEX}:){{1,{left}}}(?::{_HEX}){{1,{7 - left}}}" for left in range(1, 7))
_V6 = rf"(?:(?:{_HEX}:){{7}}{_HEX}|(?:{_HEX}:){{1,7}}:|{_SHORTENED}|:(?::{_HEX}){{1,7}}|::)(?:/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))?"
_AUTH = "credentials go under `auth: {basic: {username: ..., password: {env: GIT_TOKEN}}}`"


@dataclass(frozen=True, slots=True)
class ValueRefusal:
    """A pattern that a value may not hold, and `why` as it reads after `which`."""

    pattern: str
    why: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class ValueFormat:
    """One kind of text. `expected` reads after the word itself; an empty `pattern` takes any text.

    `private`: the noun for a value that may hold a secret and is never shown; `lone`: a text that may stand in place of the whole list;
    `single`: any one may.
    """

    expected: str
    pattern: str = ""
    refused: tuple[ValueRefusal, ...] = ()
    example: str = ""
    private: str = ""
    lone: str = ""
    single: bool = False

    def complaint(self, value: str) -> tuple[str, str] | None:
        """Return what is wrong with a value and the way out, or None."""
        shown = self.private or show(value)
        for refusal in self.refused:
            if re.search(refusal.pattern, value):
                return f"expected {self.expected}, found {shown}, which {refusal.why}", refusal.fix
        if self.pattern and not re.fullmatch(self.pattern, value):
            return f"expected {self.expected}, found {shown}", ""
        return None


def is_glob(name: str) -> bool:
    """Whether a target's name stands for all that it matches."""
    return re.search(r"[*?\[]", name) is not None


def show(value: str) -> str:
    """Quote a value for a message: one line, at most 60 characters, control characters escaped."""
    return json.dumps(value if len(value) <= 60 else value[:57] + "...")


def plain(value: str) -> str:
    """Return a value as `show` writes it, without the quotes."""
    return show(value)[1:-1]


_CONTROLS = ValueRefusal(CONTROL, "holds a control character")
_REF = (
    _CONTROLS,
    ValueRefusal(r"^refs/", "is a full ref name", "leave out `refs/heads/` or `refs/tags/`"),
    ValueRefusal("^-", "begins with `-`"),
    ValueRefusal(r"[ ~^:?*\[\\]", "holds a space or one of ~ ^ : ? * [ \\"),
    ValueRefusal(r"\.\.|@\{", "holds `..` or `@{`"),
    ValueRefusal(r"(?:^|/)\.|\.lock(?:/|$)|\.$", "has a part that begins with `.` or ends in `.lock`, or ends in `.`"),
    ValueRefusal(r"^/|//|/$", "has an empty part"),
    ValueRefusal("^(?:@|HEAD)$", "names no branch or tag of its own"),
)
_PATH = (
    _CONTROLS,
    ValueRefusal("^/", "is absolute", "paths begin at the root of the repository, without `/`"),
    ValueRefusal(r"\\", r"holds a backslash", "separate directories by `/`"),
    ValueRefusal(r"(?:^|/)\.\.(?:/|$)", "holds `..`", "a path never leaves the repository"),
)
_BELOW = (_CONTROLS, ValueRefusal("^/", "is absolute", "paths begin at `path` of the target, without `/`"), _PATH[2])
_WITH_SCHEME = "^[A-Za-z][A-Za-z0-9+.-]*:"
_PLAIN = (
    ValueRefusal(f"{CONTROL}|[ \\\\]", "holds a space, a backslash or a control character"),
    ValueRefusal(r"[?#]", "has a query or a fragment"),
    ValueRefusal(_PORT_TOO_HIGH, "has a port above 65535"),
)
_URL = (
    ValueRefusal(r"^https?://[^/]*@", "holds credentials", _AUTH),
    ValueRefusal(
        r"^ssh://[^/]*:[^/]*@", "holds a password", "ssh:// URLs sign in by a key: `auth: {ssh: {privateKey: ..., knownHosts: ...}}`"
    ),
    ValueRefusal(r"^(?!(?:https?|ssh)://)", "has another scheme or none", "write https://<host>/<path> or ssh://git@<host>/<path>"),
    *_PLAIN,
)
_HTTP = (
    ValueRefusal(r"^https?://[^/]*@", "holds credentials", _AUTH),
    ValueRefusal(r"^(?!https?://)", "has another scheme or none", "write https://<host>/<path>"),
    *_PLAIN,
)
_LOOPBACK = r"(?:localhost|127\.[0-9.]+|\[::1\])(?::[1-9][0-9]{0,4})?"
_CLEAR = ValueRefusal(rf"^http://(?!{_LOOPBACK}(?:/|$))", "isn't encrypted and isn't on this machine", "write https://<host>")
_DOTS = ValueRefusal(r"/\.\.?(?:/|$)", "has a `.` or `..` in its path")

_OCI_AUTH = ValueRefusal(r"^[a-z]+://[^/]*@", "holds credentials", "credentials go under `charts: [{url: ..., auth: {...}}]`")

_hidden = partial(ValueFormat, private="something else")

FORMS: dict[str, ValueFormat] = {
    "": ValueFormat("text", refused=(_CONTROLS,)),
    "name": ValueFormat("a DNS label of at most 56 characters (a-z, 0-9, -)", r"[a-z0-9](?:[a-z0-9-]{0,54}[a-z0-9])?", example="shop-prod"),
    "namespace": ValueFormat("a namespace: a DNS label (a-z, 0-9, -)", LABEL, example="shop"),
    "whitelist": ValueFormat("a namespace: a DNS label (a-z, 0-9, -)", LABEL, example="[shop]", lone="*"),
    "target": ValueFormat("a target's name or a glob of names", r"[a-z0-9*?\[\]!.-]+", example="shop-*"),
    "dependency": ValueFormat("the name of a target", r"[a-z0-9](?:[a-z0-9-]{0,54}[a-z0-9])?", example="infra"),
    "promoter": ValueFormat("a target's name or a glob of names", r"[a-z0-9*?\[\]!-]+", example="shop-staging", single=True),
    "ref": ValueFormat("a name by git's rules (git check-ref-format)", r".+", _REF, example="main"),
    "semver": ValueFormat(
        "a range of versions such as >=1.2 <2, ^1.2 or 1.x",
        rf"{_VERSIONS}(?: \|\| {_VERSIONS}){{0,9}}",
        (ValueRefusal(r"(?:^|[ <>=^~])v[0-9]", "has a `v` before a number", "leave it out: tags with and without it count alike"),),
        example=">=1.2 <2",
    ),
    "sha": ValueFormat("a full commit id: 40 (or 64) lower-case hex digits", r"[0-9a-f]{40}(?:[0-9a-f]{24})?"),
    "path": ValueFormat("a directory inside the repository", refused=_PATH, example="deploy/prod"),
    "rollout": ValueFormat("a file inside the repository", refused=_PATH, example="deploy/rollout.yaml"),
    "glob": ValueFormat("a glob inside the repository", r".+", _PATH, example="**/*.yaml"),
    "include": ValueFormat(
        "a glob relative to this file",
        r".+",
        (_CONTROLS, ValueRefusal("^/", "is absolute"), ValueRefusal(r"[^/]\*\*|\*\*[^/]", "has `**` as only a part of a name")),
        example="targets/*.yaml",
    ),
    "file": ValueFormat("the path of a file", r".+", (_CONTROLS,), example="/etc/anneal/ca.pem"),
    "url": ValueFormat(
        "an https://, http:// or ssh:// URL",
        rf"(?:https?://|ssh://{_USER}){_HOST}/[^ ?#\\]+",
        (*_URL, _DOTS),
        example="https://git.example.com/acme/shop.git",
        private="a URL",
    ),
    "alias": ValueFormat(
        "a URL or host:path without credentials",
        rf"(?:[a-z][a-z0-9+]*://{_USER}{_HOST}/|{_USER}{_HOST}:)[^ ?#\\]+",
        (ValueRefusal(r"^https?://[^/]*@|^(?:[a-z+]+://)?[^/@]*:[^/@]*@", "holds credentials", "name it without them"), _CONTROLS),
        example="git@git.example.com:acme/shop.git",
        private="a URL",
    ),
    "server": ValueFormat(
        "the https:// or http:// address of an API server", rf"https?://{_HOST}(?:/[^ ?#\\]*)?", (*_HTTP, _DOTS), private="a URL"
    ),
    "metricsUrl": ValueFormat(
        "the https:// or http:// address of a Prometheus",
        rf"https?://{_HOST}(?:/[^ ?#\\]*)?",
        (*_HTTP, _DOTS),
        example="https://prometheus.example.com",
        private="a URL",
    ),
    "pageUrl": ValueFormat(
        "the https:// address of the page, without a path",
        rf"https?://{_HOST}",
        (
            *_HTTP,
            _CLEAR,
            ValueRefusal(r"^https?://[^/]*/", "has a path", "the page has a host of its own: write https://<host>"),
            ValueRefusal(r"^https?://[^/]*[A-Z]", "has capital letters", "browsers name a host in small letters: write it so"),
            ValueRefusal(r"^(?:https://[^/]*:443|http://[^/]*:80)$", "names the port that goes without saying", "leave it out"),
        ),
        example="https://anneal.example.com",
        private="a URL",
    ),
    "issuer": ValueFormat(
        "the https:// URL of an issuer",
        rf"https?://{_HOST}(?:/[^ ?#\\]*)?",
        (*_HTTP, _CLEAR, _DOTS),
        example="https://login.example.com",
        private="a URL",
    ),
    "header": ValueFormat(
        "the name of a header (A-Z, a-z, 0-9, -)",
        r"[A-Za-z][A-Za-z0-9-]{0,63}",
        (ValueRefusal("_", "has an underscore, and such headers are dropped", "write `-`"),),
        example="X-Forwarded-Email",
    ),
    "clientId": ValueFormat("the id of a client", r"[!-~]{1,255}", example="anneal"),
    "scope": ValueFormat("a scope", r"[!#-\[\]-~]{1,100}", example="groups"),
    "claim": ValueFormat("the name of a claim", r"[!-~]{1,255}", example="email"),
    "person": ValueFormat("the name of a user or a group", r"[^,\s](?:[^,]*[^,\s])?", (_CONTROLS,), example="platform"),
    "groupKind": ValueFormat("Kind or Kind.group, e.g. Namespace or ClusterRole.rbac.authorization.k8s.io", _GROUP_KIND),
    "groupVersion": ValueFormat("an apiVersion", rf"(?:{LABEL}(?:\.{LABEL})*/)?{LABEL}", example="example.com/v1"),
    "kindName": ValueFormat("a kind", r"[A-Z][A-Za-z0-9]*", example="Offer"),
    "resourceName": ValueFormat("a name (a-z, 0-9, -, _)", r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?", example="grafana"),
    "labelKey": ValueFormat(
        "the name of a label", rf"(?:{LABEL}(?:\.{LABEL})*/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{{0,61}}[A-Za-z0-9])?", example="app"
    ),
    "keyRegex": ValueFormat("a regular expression (RE2)", r"[^\x00-\x1f\x7f]{1,500}", example="(.*)"),
    "applySet": ValueFormat(
        "the id of an ApplySet: applyset-, 43 of A-Z, a-z, 0-9, - and _, -v1",
        r"applyset-[A-Za-z0-9_-]{43}-v1",
        example="applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1",
    ),
    "cel": ValueFormat("an expression in CEL", r"[\s\S]*\S[\s\S]*", example="status.phase == 'Ready'"),
    "guardedKind": ValueFormat(
        "one of Namespace, CustomResourceDefinition, PersistentVolume, PersistentVolumeClaim (all others need no opt-in)",
        r"Namespace|CustomResourceDefinition(?:\.apiextensions\.k8s\.io)?|PersistentVolume(?:Claim)?",
        example="PersistentVolumeClaim",
    ),
    "serviceAccount": ValueFormat("<namespace>/<name> of a ServiceAccount", rf"{LABEL}/{LABEL}(?:\.{LABEL})*", example="shop/deployer"),
    "pointer": ValueFormat("a JSON pointer, e.g. /spec/replicas", r"(?:/(?:[^~/]|~[01])*)+", (_CONTROLS,), example="/spec/replicas"),
    "ociUrl": ValueFormat(
        "an oci:// URL of a chart",
        rf"oci://{_HOST}/[a-z0-9][a-z0-9._/-]*",
        (_OCI_AUTH, _DOTS, *_PLAIN),
        example="oci://registry.example.com/charts/web",
        private="a URL",
    ),
    "chartUrl": ValueFormat(
        "an https:// or http:// URL of a chart repository",
        rf"https?://{_HOST}(?:/[^ ?#\\]*)?",
        (*_HTTP, _DOTS),
        example="https://charts.example.com/stable",
        private="a URL",
    ),
    "chartPrefix": ValueFormat(
        "an oci://, https:// or http:// URL, up to where charts may lie",
        rf"(?:oci|https?)://{_HOST}(?:/[^ ?#\\]*)?",
        (_OCI_AUTH, ValueRefusal(r"^(?!(?:oci|https?)://)", "has another scheme or none", "write oci://<host>/<path>"), *_PLAIN, _DOTS),
        example="oci://registry.example.com/charts",
        private="a URL",
    ),
    "chartName": ValueFormat("the name of a chart", r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})", example="web"),
    "chartVersion": ValueFormat(
        "a version, or a range of versions as Helm reads it, e.g. 1.2.3, ^1.2 or >=1.2 <2",
        r"[0-9A-Za-z.+*^~<>=!|, -]{1,200}",
        example="1.2.3",
    ),
    "sha256": ValueFormat("sha256: and 64 hex digits", r"sha256:[0-9a-f]{64}"),
    "objectName": ValueFormat("the name of an object (a-z, 0-9, -, .)", rf"{LABEL}(?:\.{LABEL})*", example="shop-values"),
    "dataKey": ValueFormat("a key of a ConfigMap or Secret", r"[A-Za-z0-9._-]{1,253}", example="values.yaml"),
    "releaseName": ValueFormat(
        "the name of a release: at most 53 of a-z, 0-9, -, .",
        r"(?=.{1,53}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*",
        example="shop",
    ),
    "valuesFile": ValueFormat(
        "a file inside the repository",
        r".+",
        (*_BELOW, ValueRefusal(_WITH_SCHEME, "is a URL", "commit the file, or write what it holds under `values`")),
        example="values-prod.yaml",
    ),
    "nix": ValueFormat(
        "a Nix expression of at most 60,000 characters",
        r"[\s\S]{1,60000}",
        (
            ValueRefusal(r"[\x00-\x08\x0b-\x1f\x7f]", "holds a control character"),
            ValueRefusal(r"\{home\}", "holds {home}", "write { home }"),
        ),
        example="(import ./hostgroup.nix).network.modules",
    ),
    "source": ValueFormat("a file or directory inside the repository", r".+", _BELOW, example="../common"),
    "treeFile": ValueFormat(
        "a path inside the repository",
        r".+",
        (*_BELOW, ValueRefusal(_WITH_SCHEME, "is a URL", "commit what it names")),
        example="main.jsonnet",
    ),
    "renderer": ValueFormat("the name of a renderer", example="file"),
    "env": _hidden("the name of an environment variable", r"[A-Za-z_][A-Za-z0-9_]*", example="GIT_TOKEN"),
    "secretFile": _hidden("the path of a file", r".+", (_CONTROLS,), example="/run/secrets/token"),
    "awsSecret": _hidden("the name or ARN of an AWS secret", r"[A-Za-z0-9/_+=.@:!-]{1,512}", example="anneal/webhook"),
    "secretKey": _hidden("a key of a JSON object", r".{1,256}", (_CONTROLS,), example="github"),
    "stage": _hidden("the stage of a version", r"[A-Za-z0-9_./+=@-]{1,256}", example="AWSPREVIOUS"),
    "awsParameter": _hidden("the name or ARN of a parameter", r"[A-Za-z0-9/_.:-]{1,1024}", example="/anneal/git-token"),
    "kubernetesSecret": _hidden(
        "<namespace>/<name>/<key> of a Secret",
        rf"{LABEL}/{LABEL}(?:\.{LABEL})*/[A-Za-z0-9._-]{{1,253}}",
        example="anneal-system/git/token",
    ),
    "eksCluster": ValueFormat("the name of an EKS cluster", r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", example="prod"),
    "region": ValueFormat("an AWS region", r"[a-z]{2,4}(?:-[a-z]+){1,3}-[0-9]{1,2}", example="eu-central-1"),
    "roleArn": ValueFormat(
        "the ARN of a role",
        r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,576}",
        example="arn:aws:iam::123456789012:role/anneal",
    ),
    "kmsArn": ValueFormat(
        "the ARN of a key or alias of AWS KMS",
        r"arn:aws[a-z-]*:kms:[a-z]{2,4}(?:-[a-z]+){1,3}-[0-9]{1,2}:[0-9]{12}:(?:key|alias)/[A-Za-z0-9/_-]{1,256}",
        example="arn:aws:kms:eu-central-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    ),
    "queueUrl": ValueFormat(
        "the URL of a FIFO queue",
        rf"https?://{_HOST}/[A-Za-z0-9_/-]+\.fifo",
        (*_HTTP, _DOTS),
        example="https://sqs.eu-central-1.amazonaws.com/123456789012/anneal.fifo",
        private="a URL",
    ),
    "username": _hidden("a user name", r".+", (_CONTROLS, ValueRefusal(":", "holds a colon (RFC 7617)")), example="x-access-token"),
    "appId": ValueFormat("the id of a GitHub App", r"[A-Za-z0-9._-]{1,64}", example="Iv1.0123456789abcdef"),
    "sshKey": _hidden(
        "a public SSH key as in authorized_keys",
        r"(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(?:256|384|521)|sk-ssh-ed25519@openssh\.com|sk-ecdsa-sha2-nistp256@openssh\.com)"
        r" [A-Za-z0-9+/]+={0,2}(?: .*)?",
        (_CONTROLS,),
        example="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExampleExampleExampleExampleExampleExampleExam release",
    ),
    "pgpKey": _hidden(
        "an armored OpenPGP public key",
        r"\s*-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n[\s\S]+-----END PGP PUBLIC KEY BLOCK-----\s*",
    ),
    "bind": ValueFormat(
        "host:port",
        r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?):(?:0|[1-9][0-9]{0,4})",
        (ValueRefusal(r":(?:6553[6-9]|655[4-9][0-9]|65[6-9][0-9]{2}|6[6-9][0-9]{3}|[7-9][0-9]{4})$", "has a port above 65535"),),
        example="127.0.0.1:9464",
    ),
    "network": ValueFormat("a network or an address, e.g. 10.0.0.0/8 or fd00::/8", f"{_V4}|{_V6}", example="10.0.0.0/8"),
    "apiVersion": ValueFormat("anneal.dev/v1alpha1", r"anneal\.dev/v1alpha1", example="anneal.dev/v1alpha1"),
    "document": ValueFormat("Config", "Config", example="Config"),
}


@dataclass(frozen=True, slots=True)
class NumberRange:
    """Bounds of a number, both included; `noun` reads after `expected`."""

    noun: str
    least: float
    most: float
    is_duration: bool = False

    def span(self) -> str:
        """Write the bounds."""
        return f"{duration(self.least)} to {duration(self.most)}" if self.is_duration else f"{self.least:.0f} to {self.most:.0f}"


RANGES = {
    "count": NumberRange("a whole number", 0, 1_000_000_000),
    "number": NumberRange("a whole number", 1, 1_000_000_000_000),
    "body": NumberRange("a number of bytes", 4096, 25 * 1024 * 1024),
    "fraction": NumberRange("a number", 0, 1),
    "duration": NumberRange("a duration such as 30s, 5m or 1h30m", 1, 31_536_000, is_duration=True),
    "durationOrNever": NumberRange("0 for never, or a duration such as 30s or 5m", 0, 31_536_000, is_duration=True),
}
"""Durations: at least a second (a Lease counts whole ones), at most a year."""

DURATION = r"(?=[0-9])(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m)?(?:([0-9]{1,9}(?:\.[0-9]{1,3})?)s)?"
_UNITS = (3600, 60, 1)


def seconds(text: str) -> float | None:
    """Read `1h30m`, `5m`, `30s`; None if it isn't a duration."""
    match = re.fullmatch(DURATION, text)
    return sum(float(part) * unit for part, unit in zip(match.groups("0"), _UNITS, strict=True)) if match else None


def duration(value: float) -> str:
    """Write seconds as `1h30m`: what `seconds` reads back."""
    hours, rest = divmod(value, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "m"), (left, "s"))
    return "".join(f"{part:.10g}{unit}" for part, unit in parts if part) or "0s"
