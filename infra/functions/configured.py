"""What an operator's configuration asks of the package and of the functions' roles: the files it reads, and the rights it needs.

Rights follow from what the configuration names, so they are written once: each function may read exactly the secrets that it
resolves, look at exactly its clusters, and assume exactly the roles that are written there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from handler.config.git_settings import SecretRef
from handler.config.load import load, parse
from handler.config.secrets import RUNS, Need, api_needs, references
from handler.config.settings import Cluster, Eks, Settings
from handler.model.errors import ConfigInvalid, Problem
from handler.render import RENDERERS
from infra.functions import programs


@dataclass(frozen=True, slots=True)
class Function:
    """What one function resolves of the configuration. `clusters`: it speaks to them."""

    needs: Callable[[Settings], frozenset[Need]]
    clusters: bool


def _always(*needs: Need) -> Callable[[Settings], frozenset[Need]]:
    return lambda _settings: frozenset(needs)


FUNCTIONS: Mapping[str, Function] = {
    "webhook": Function(_always("webhooks"), clusters=False),
    "worker": Function(_always(*RUNS), clusters=True),
    "tick": Function(_always(), clusters=True),
    "codecommit": Function(_always(), clusters=False),
    "api": Function(api_needs, clusters=True),
}


def settings_of(path: Path) -> tuple[Settings, dict[str, Path]]:
    """Read a configuration. Returns it and its files, by their names in the package.

    Raises:
        ConfigInvalid: with every mistake.
    """
    settings = load(path, renderers=RENDERERS)
    included: list[Path] = []

    def read(glob: str, file: str) -> Sequence[tuple[str, str]]:
        found = sorted(each for each in Path(file).parent.glob(glob) if each.is_file())
        included.extend(found)
        return [(str(each), each.read_text("utf-8-sig")) for each in found]

    parse(path.read_text("utf-8-sig"), str(path), read_include=read, renderers=RENDERERS)
    return settings, {"anneal.yaml": path, **_placed(path.parent, included), **_placed(path.parent, _named(settings))}


def rare_libraries(settings: Settings) -> frozenset[str]:
    """Return which libraries that few configurations need this one does (`libraries.libraries`)."""
    judged = settings.health_check_exprs or any(target.health_check_exprs for target in settings.targets)
    triggers = [target.trigger.resource for target in settings.targets if target.trigger and target.trigger.resource]
    keyed = any(each.key_transformations for trigger in triggers for each in trigger.resources)
    return frozenset(name for name, needs in (("cel", judged), ("re2", keyed)) if needs)


def _named(settings: Settings) -> Iterator[Path]:
    """Yield the files a configuration names that are no secrets: host keys and authorities."""
    for target in settings.targets:
        if target.repository.auth.ssh:
            yield Path(target.repository.auth.ssh.known_hosts)
        if target.repository.tls.ca_file:
            yield Path(target.repository.tls.ca_file)
        yield from (Path(each.ca_file) for each in target.charts if each.ca_file)
    yield from (Path(each.ca_file) for each in settings.prometheus if each.ca_file)
    if settings.page and settings.page.oidc and settings.page.oidc.ca_file:
        yield Path(settings.page.oidc.ca_file)


def _placed(base: Path, paths: Collection[Path] | Iterator[Path]) -> dict[str, Path]:
    """Return files by their path relative to the configuration, which is their place in the package."""
    found, problems = {}, []
    for path in paths:
        full = base / path if not path.is_relative_to(base) else path
        name = full.relative_to(base).as_posix() if full.is_relative_to(base) else ""
        if not name or ".." in PurePosixPath(name).parts:
            fix = "put it beside the configuration and name it by a relative path"
            problems.append(Problem(str(path), "lies outside the configuration's directory, which is what a function has", fix=fix))
        elif not full.is_file():
            problems.append(Problem(str(path), f"expected a file, found none at {full}", fix="a function finds only what is packed"))
        else:
            found[name] = full
    if problems:
        raise ConfigInvalid(*problems)
    return found


def unfit(settings: Settings, *, ssh: bool, renderers: str = "", arch: str = "") -> tuple[Problem, ...]:
    """Return what a function couldn't do of a configuration, each with the way out. `renderers`, `arch`: as in `programs.unfit`."""
    problems = list(_secrets_out_of_reach(settings))
    for target in settings.targets:
        subject = f"targets[{target.name}]"
        if not ssh and target.repository.url.startswith("ssh:"):
            problems.append(Problem(f"{subject}.repository.url", "needs the SSH library, which isn't packed", fix="scripts/package --ssh"))
        if not ssh and target.verify:
            problems.append(Problem(f"{subject}.verify", "needs the OpenPGP library, which isn't packed", fix="scripts/package --ssh"))
        if not _reachable(target.cluster):
            fix = "cluster: {eks: {cluster: NAME}}, or {kubeconfig: {awsSecretsManager: {id: NAME}}}"
            problems.append(Problem(f"{subject}.cluster", "is none that a function reaches: it has no kubeconfig file and no pod", fix=fix))
        problems += programs.unfit(target, renderers, arch)
    return tuple(problems)


def _reachable(cluster: Cluster) -> bool:
    ref = cluster.kubeconfig
    return bool(cluster.eks or (ref and not ref.file and not ref.kubernetes_secret))


def _secrets_out_of_reach(settings: Settings) -> Iterator[Problem]:
    for ref in dict.fromkeys(references(settings)):
        if ref.file or ref.kubernetes_secret:
            fix = "awsSecretsManager: {id: NAME} or awsParameter: NAME"
            yield Problem(str(ref), "is no place that a function reaches, and no secret is packed", fix=fix)


def variables(settings: Settings) -> dict[str, tuple[str, ...]]:
    """Return by function the environment variables that it expects secrets in; the deployer sets them, for that function alone."""
    wanted = {name: tuple(dict.fromkeys(ref.env for ref in _resolved(settings, each) if ref.env)) for name, each in FUNCTIONS.items()}
    return {name: names for name, names in wanted.items() if names}


def _resolved(settings: Settings, function: Function) -> list[SecretRef]:
    """Return the secrets that a function resolves."""
    needs = function.needs(settings)
    return list(references(settings, needs | {"clusters"} if function.clusters else needs))


def resources(settings: Settings) -> dict[str, Any]:
    """Return the policies, for CloudFormation, that let each function's role read what its function resolves."""
    return {f"{name.title()}Reads": _policy(name, found) for name, each in FUNCTIONS.items() if (found := _statements(settings, each))}


def _policy(name: str, statements: list[dict[str, Any]]) -> dict[str, Any]:
    document = {"Version": "2012-10-17", "Statement": statements}
    wanted = {"PolicyName": "configured", "PolicyDocument": document, "Roles": [{"Ref": f"{name.title()}Role"}]}
    return {"Type": "AWS::IAM::Policy", "Properties": wanted}


def _statements(settings: Settings, function: Function) -> list[dict[str, Any]]:
    refs = _resolved(settings, function)
    eks = [target.cluster.eks for target in settings.targets if target.cluster.eks] if function.clusters else []
    wanted = {
        "secretsmanager:GetSecretValue": [arn for ref in refs if ref.aws_secrets_manager for arn in _secret(ref.aws_secrets_manager.id)],
        "ssm:GetParameter": [_parameter(ref) for ref in refs if ref.aws_parameter],
        "eks:DescribeCluster": [_cluster(each) for each in eks if not each.role],
        "kms:Decrypt": [arn for target in settings.targets if target.decryption for arn in target.decryption.kms]
        if "decryption" in function.needs(settings)
        else [],
        "sts:AssumeRole": [each.role for each in eks if each.role],
    }
    return [_allow(action, found) for action, found in wanted.items() if found]


def _allow(action: str, found: list[Any]) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": [each for index, each in enumerate(found) if each not in found[:index]]}


def _own(service: str, resource: str, region: str = "${AWS::Region}") -> dict[str, str]:
    """Return the ARN of a resource of this account, as CloudFormation fills it in."""
    return {"Fn::Sub": f"arn:${{AWS::Partition}}:{service}:{region}:${{AWS::AccountId}}:{resource}"}


def _secret(name: str) -> list[Any]:
    """Return a secret's ARN: its name and six characters. An ARN in a configuration doesn't show whether it has them already."""
    return [name, f"{name}-??????"] if name.startswith("arn:") else [_own("secretsmanager", f"secret:{name}-??????")]


def _parameter(ref: SecretRef) -> Any:
    name = ref.aws_parameter
    return name if name.startswith("arn:") else _own("ssm", f"parameter/{name.removeprefix('/')}")


def _cluster(eks: Eks) -> Any:
    return _own("eks", f"cluster/{eks.cluster}", eks.region or "${AWS::Region}")
