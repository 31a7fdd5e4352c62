"""Kubeconfigs and pods are read as the vendor's own loaders read them: the same address, trust, proxy and signature, the same refusals."""

from __future__ import annotations

import base64
import json
import re
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import urllib3
import yaml
from kubernetes.client import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from handler.cluster import kubeconfig
from handler.cluster.connect import connect
from handler.config.settings import Cluster
from handler.model.errors import KubeconfigInvalid
from tests.rooms.source.certificates import Authority

pytestmark = pytest.mark.slow

SIZE = 7
Loader: Any = KubeConfigLoader  # the vendor's classes carry no types
Merger: Any = KubeConfigMerger
PodLoader: Any = InClusterConfigLoader
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(scope="session")
def pem(tmp_path_factory: pytest.TempPathFactory) -> str:
    return Authority(tmp_path_factory.mktemp("pem"), "client").certificate("one").read_text()


def document(cluster: Any = None, user: Any = None, **changes: Any) -> dict[str, Any]:
    """A kubeconfig of one context."""
    return {
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "https://one:6443"} | (cluster or {})}],
        "users": [{"name": "u", "user": {"token": "t0ken"} if user is None else user}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        **changes,
    }


def plugin(place: Path, status: dict[str, str]) -> dict[str, Any]:
    answer = json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status})
    place.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    place.chmod(place.stat().st_mode | stat.S_IXUSR)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": f"./{place.name}", "interactiveMode": "Never"}}


def jwt(ends: datetime) -> str:
    parts = ({"alg": "none"}, {"exp": ends.timestamp()})
    return ".".join([*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), "c2ln"])


def users(place: Path, pem: str) -> dict[str, dict[str, Any]]:
    """Every form of a user; what they name lies in `place`."""
    data = base64.b64encode(pem.encode()).decode()
    for name in ("ca.pem", "client.pem"):
        (place / name).write_text(pem)
    (place / "token").write_text("from-a-file\n")
    later = datetime.now(UTC) + timedelta(days=1)
    oidc = {"name": "oidc", "config": {"id-token": jwt(later)}}
    gcp = {"name": "gcp", "config": {"access-token": "of-gcp", "expiry": later.isoformat()}}
    both = {"client-certificate-data": data, "client-key-data": data}
    return {
        "token": {"token": "t0ken"},
        "a number as token": {"token": 12345},
        "an empty token before a file": {"token": "", "tokenFile": "token"},
        "token of a file": {"tokenFile": "token"},
        "token of an absolute file": {"tokenFile": str(place / "token")},
        "name and password": {"username": "anna", "password": "pä:ss"},
        "name alone": {"username": "anna"},
        "token before password": {"token": "t", "username": "anna", "password": "p"},
        "certificate": both,
        "certificate files": {"client-certificate": "client.pem", "client-key": "client.pem"},
        "certificate data, key file": {"client-certificate-data": data, "client-key": "client.pem"},
        "certificate without key": {"client-certificate": "client.pem"},
        "empty data": {"client-certificate-data": "", "client-key-data": "", "token": "t"},
        "certificate and token": {**both, "token": "t"},
        "nothing": {},
        "plugin with a token": plugin(place / "gives-token", {"token": "of-a-plugin"}),
        "plugin with a token that ends": plugin(place / "ends", {"token": "t", "expirationTimestamp": later.isoformat()}),
        "plugin with a token that has ended": plugin(place / "ended", {"token": "t", "expirationTimestamp": "2020-01-01T00:00:00Z"}),
        "plugin with a certificate": plugin(place / "gives-cert", {"clientCertificateData": pem, "clientKeyData": pem}),
        "token before plugin": {"token": "t", "exec": {"command": "false"}},
        "oidc": {"auth-provider": oidc},
        "oidc before token": {"auth-provider": oidc, "token": "t"},
        "oidc that can't be used": {"auth-provider": {"name": "oidc", "config": {"id-token": "a.b"}}, "token": "t"},
        "gcp": {"auth-provider": gcp},
        "azure": {"auth-provider": {"name": "azure", "config": {}}, "token": "t"},
        "a provider without name": {"auth-provider": {"config": {}}, "token": "t"},
    }


def clusters(place: Path, pem: str) -> dict[str, dict[str, Any]]:
    """Every form of a cluster."""
    data = base64.b64encode(pem.encode()).decode()
    return {
        "slash": {"server": "https://one:6443/"},
        "path": {"server": "https://one:6443/clusters/a/"},
        "plain http": {"server": "http://one:8001", "certificate-authority-data": data},
        "authority": {"certificate-authority-data": data},
        "authority file": {"certificate-authority": "ca.pem"},
        "authority of both": {"certificate-authority": "absent.pem", "certificate-authority-data": data},
        "unchecked": {"insecure-skip-tls-verify": True},
        "checked": {"insecure-skip-tls-verify": False, "certificate-authority": str(place / "ca.pem")},
        "server name": {"tls-server-name": "api.internal"},
        "proxy": {"proxy-url": "http://proxy:3128"},
        "proxy with password": {"proxy-url": "http://a:b@proxy:3128"},
        "no proxy": {"proxy-url": ""},
    }


def forms(place: Path, pem: str) -> dict[str, dict[str, Any]]:
    """Every form of a cluster and of a user, and of what joins them."""
    known = users(place, pem)
    made = {f"user: {name}": document({}, user) for name, user in known.items()}
    made |= {f"cluster: {name}": document(cluster) for name, cluster in clusters(place, pem).items()}
    made["unchecked with a certificate"] = document({"insecure-skip-tls-verify": True}, known["certificate"])
    made["no user"] = document(contexts=[{"name": "main", "context": {"cluster": "c"}}])
    made["a user that isn't there"] = document(contexts=[{"name": "main", "context": {"cluster": "c", "user": "x"}}])
    return made


def vendors(files: str, context: str = "") -> tuple[Any, ...]:
    merger = Merger(files)
    loader = Loader(merger.config, context or None, config_base_path=None, config_persister=merger.save_changes)
    configuration = Configuration()
    configuration.connection_pool_maxsize, configuration.keep_alive = SIZE, True
    loader.load_and_set(configuration)
    key = str(configuration.get_api_key_with_prefix("BearerToken") or "").strip()
    return (
        str(configuration.host).rstrip("/"),
        key,
        *pooled(RESTClientObject(configuration).pool_manager, Path(files.partition(":")[0]).parent),
    )


def ours(files: str, context: str = "") -> tuple[Any, ...]:
    connection = connect(Cluster(), kubeconfig=files, context=context, environ={})
    return connection.host, connection.authorization(), *pooled(connection.pool(SIZE), Path(files.partition(":")[0]).parent)


def pooled(pool: urllib3.PoolManager, place: Path) -> tuple[Any, ...]:
    """What a pool is made of. What was data is one word: the vendor leaves it in files of its own."""
    given = {key: value for key, value in pool.connection_pool_kw.items() if value is not None and not key.startswith("_proxy")}
    context, authority = given.pop("ssl_context", None), given.pop("ca_cert_data", None)
    if authority:
        given["ca_certs"] = f"data {authority}"
    if context:
        assert context.verify_mode == given["cert_reqs"]
        given |= {"cert_file": "data", "key_file": "data"}
    for key in ("ca_certs", "cert_file", "key_file"):
        if key in given and not given[key].startswith(("data", str(place))):
            given[key] = f"data {Path(given[key]).read_text()}" if key == "ca_certs" else "data"
    if {given.get("cert_file"), given.get("key_file")} >= {"data"}:
        given |= {"cert_file": "data", "key_file": "data"}  # one of them as data: both are read at once
    return type(pool), str(pool.proxy), dict(getattr(pool, "proxy_headers", None) or {}), given


def told(read: Any, files: str, context: str = "") -> Any:
    """What a reader makes of files, or how it refuses them."""
    try:
        return read(files, context)
    except KubeconfigInvalid as error:
        return str(error).partition(": ")[2].partition("; kubectl config view")[0]
    except ConfigException as error:
        return str(error)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return "can't be read"


def write(place: Path, found: Any) -> str:
    place.write_text(yaml.safe_dump(found))
    return str(place)


def test_every_kubeconfig_form_loads_as_by_kubernetes_config(tmp_path: Path, pem: str) -> None:
    made = {name: write(tmp_path / f"{number}.yaml", found) for number, (name, found) in enumerate(forms(tmp_path, pem).items())}
    assert {name: ours(file) for name, file in made.items()} == {name: vendors(file) for name, file in made.items()}


@pytest.mark.parametrize(
    "environment",
    [
        {"https_proxy": "http://proxy:3128", "http_proxy": "http://other:3128"},
        {"HTTPS_PROXY": "http://a:b@proxy:3128"},
        {"all_proxy": "http://proxy:3128"},
        {"https_proxy": "http://proxy:3128", "no_proxy": "one"},
        {"https_proxy": "http://proxy:3128", "no_proxy": "elsewhere, .one"},
        {"https_proxy": "http://proxy:3128", "no_proxy": "ONE:6443"},
        {"https_proxy": "http://proxy:3128", "no_proxy": "one:6444,ne"},
        {"https_proxy": "http://proxy:3128", "no_proxy": "*"},
        {"https_proxy": "http://proxy:3128", "no_proxy": "10.0.0.0/8,fd00::/8"},
        {"https_proxy": "http://proxy:3128", "no_proxy": "example.com"},
    ],
)
def test_proxies_of_the_environment_count_as_by_kubernetes_client(
    environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    hosts = (
        "https://one:6443",
        "http://one:8001",
        "https://10.1.2.3",
        "https://[fd00::1]:6443",
        "https://a.example.com",
        "https://bexample.com",
    )
    named = [write(tmp_path / f"{number}.yaml", document({"server": host})) for number, host in enumerate(hosts)]
    named.append(write(tmp_path / "own.yaml", document({"proxy-url": "http://own:1"})))
    named.append(write(tmp_path / "none.yaml", document({"proxy-url": ""})))
    assert [ours(file) for file in named] == [vendors(file) for file in named]


BROKEN: dict[str, Any] = {
    "nothing": None,
    "a list": [1],
    "a text": "text",
    "no context named": document(**{"current-context": None}),
    "an empty context": document(**{"current-context": ""}),
    "another context": document(**{"current-context": "x"}),
    "no contexts": document(contexts=[]),
    "contexts of another type": document(contexts=5),
    "a context that is none": document(contexts=[{"name": "main", "context": None}]),
    "a context without cluster": document(contexts=[{"name": "main", "context": {"user": "u"}}]),
    "a cluster that isn't there": document(contexts=[{"name": "main", "context": {"cluster": "x"}}]),
    "a cluster without fields": document(clusters=[{"name": "c"}]),
    "a cluster without name": document(clusters=[{"cluster": {}}]),
    "a user without fields": document(users=[{"name": "u"}]),
    "a user that is a text": document(users=[{"name": "u", "user": "x"}]),
    "an empty field": document({"certificate-authority-data": None}),
    "an empty token": document(user={"token": None}),
    "an authority that isn't there": document({"certificate-authority": "absent.pem"}),
    "a certificate that isn't there": document(user={"client-certificate": "absent.pem", "client-key": "absent.pem"}),
    "a token file that isn't there": document(user={"tokenFile": "absent"}),
    "data that isn't base64": document({"certificate-authority-data": "a"}),
    "data of another type": document({"certificate-authority-data": 5}),
    "an empty proxy": document({"proxy-url": None}),
    "an empty verification": document({"insecure-skip-tls-verify": None}),
    "an empty provider": document(user={"auth-provider": None}),
    "a password without a name": document(user={"username": None, "password": "p"}),
}


def shown(told: Any) -> str:
    """A refusal without what may differ: the vendor quotes an entry, secrets and all, where we name it."""
    return re.split(r"/?\{|/(?:clusters|users|contexts)\[|can't be read", str(told))[0].rstrip("/")


@pytest.mark.parametrize("name", BROKEN)
def test_a_kubeconfig_that_kubernetes_config_refuses_is_refused_by_the_same_message(name: str, tmp_path: Path) -> None:
    file = write(tmp_path / "kubeconfig", BROKEN[name])
    refused, theirs = told(ours, file), told(vendors, file)
    assert isinstance(refused, str), "it led somewhere"
    assert shown(refused) == shown(theirs)


def test_what_the_loader_says_of_a_provider_is_not_quoted(tmp_path: Path) -> None:
    provider = {"auth-provider": {"name": "oidc", "config": {"CANARY": "CANARY"}}}
    with pytest.raises(KubeconfigInvalid, match="its auth-provider can't be used") as refused:
        connect(Cluster(), kubeconfig=write(tmp_path / "a", document(user=provider)), environ={})
    assert "id-token" not in f"{refused.value} {refused.value.__cause__}"


def test_kubeconfig_files_are_merged_and_relative_to_themselves(tmp_path: Path, pem: str) -> None:
    (tmp_path / "b").mkdir()
    for place in (tmp_path, tmp_path / "b"):
        (place / "ca.pem").write_text(pem)
        (place / "token").write_text(f"token of {place.name}")
    first = document({"certificate-authority": "ca.pem"}, {"tokenFile": "token"})
    second = document({"server": "https://two", "certificate-authority": "ca.pem"}, {"tokenFile": "token"})
    second["clusters"].append({"name": "d", "cluster": {"server": "https://d", "certificate-authority": "ca.pem"}})
    second["users"].append({"name": "v", "user": {"tokenFile": "token"}})
    second["contexts"] += [
        {"name": "own", "context": {"cluster": "d", "user": "v"}},
        {"name": "mixed", "context": {"cluster": "c", "user": "v"}},
    ]
    second["current-context"] = "own"
    files = ":".join([write(tmp_path / "a.yaml", first), "", str(tmp_path / "absent"), write(tmp_path / "b" / "b.yaml", second)])
    for context in ("", "main", "own", "mixed"):
        assert ours(files, context) == vendors(files, context), context
    assert ours(files)[0] == "https://d", "the last of them says which context"


def test_a_certificate_renewed_by_an_exec_plugin_is_used_on_refresh(tmp_path: Path, pem: str) -> None:
    user = plugin(tmp_path / "plugin", {"token": "first"})
    connection = connect(Cluster(), kubeconfig=write(tmp_path / "a", document({}, user)), environ={})
    plugin(tmp_path / "plugin", {"clientCertificateData": pem, "clientKeyData": pem})
    connection.refresh(connection.generation)
    assert (connection.authorization(), "ssl_context" in connection.pool(1).connection_pool_kw) == ("", True)


@pytest.mark.parametrize(("fields", "lacks"), [({"apiVersion": "v1"}, "command"), ({"command": "true"}, "apiVersion")])
def test_an_exec_plugin_without_a_command_is_refused(fields: dict[str, str], lacks: str, tmp_path: Path) -> None:
    with pytest.raises(KubeconfigInvalid, match=f"exec: malformed request. missing key '{lacks}'"):
        connect(Cluster(), kubeconfig=write(tmp_path / "a", document({}, {"exec": fields})), environ={})


def test_a_kubeconfig_cluster_without_a_server_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a", document(clusters=[{"name": "c", "cluster": {"proxy-url": "http://proxy:1"}}]))
    assert vendors(file)[0] == ""
    with pytest.raises(KubeconfigInvalid, match="names a server by ''"):
        connect(Cluster(), kubeconfig=file, environ={})


def test_an_auth_providers_renewed_token_is_written_back(tmp_path: Path, pem: str) -> None:
    (tmp_path / "answer").write_text(json.dumps({"credential": {"access_token": "CANARY-renewed", "token_expiry": "2099-01-01T00:00:00Z"}}))
    config = {"access-token": "old", "expiry": "2020-01-01T00:00:00Z", "cmd-path": "cat", "cmd-args": str(tmp_path / "answer")}
    file = write(tmp_path / "a", document({}, {"auth-provider": {"name": "gcp", "config": config}}))
    connection = connect(Cluster(), kubeconfig=file, environ={})
    assert connection.authorization() == "Bearer CANARY-renewed"
    assert "CANARY-renewed" in Path(file).read_text()


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.mark.parametrize("host", ["10.0.0.1", "fd00::1", "kubernetes.default.svc"])
def test_a_pods_service_account_loads_as_by_kubernetes_config_and_its_token_is_reread(
    host: str, tmp_path: Path, pem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in {"token": "of-the-pod", "ca.crt": pem}.items():
        (tmp_path / name).write_text(text)
    environ = POD | {"KUBERNETES_SERVICE_HOST": host}
    theirs = Configuration()
    PodLoader(str(tmp_path / "token"), str(tmp_path / "ca.crt"), environ=environ).load_and_set(theirs)
    monkeypatch.setattr(kubeconfig, "_POD", tmp_path)
    monkeypatch.setattr(kubeconfig, "_POD_REREAD", 0.0)
    loaded = kubeconfig.from_pod(environ, "the pod")
    assert (loaded.host, loaded.authorization(), loaded.tls["ca_certs"], loaded.verified) == (
        *(theirs.host, theirs.get_api_key_with_prefix("BearerToken")),
        *(theirs.ssl_ca_cert, theirs.verify_ssl),
    )
    (tmp_path / "token").write_text("rotated")
    assert loaded.authorization() == "bearer rotated"


@pytest.mark.parametrize(
    ("environ", "token", "authority"),
    [({}, "t", "a"), (POD | {"KUBERNETES_SERVICE_PORT": ""}, "t", "a"), (POD, None, "a"), (POD, "", "a"), (POD, "t", None), (POD, "t", "")],
)
def test_an_incomplete_service_account_is_refused_as_by_kubernetes_config(
    environ: dict[str, str], token: str | None, authority: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("token", token), ("ca.crt", authority)):
        if text is not None:
            (tmp_path / name).write_text(text)
    with pytest.raises(ConfigException) as theirs:
        PodLoader(str(tmp_path / "token"), str(tmp_path / "ca.crt"), environ=environ).load_and_set(Configuration())
    monkeypatch.setattr(kubeconfig, "_POD", tmp_path)
    with pytest.raises(KubeconfigInvalid, match=f"^the pod: {re.escape(str(theirs.value))}; set automountServiceAccountToken"):
        kubeconfig.from_pod(environ, "the pod")
