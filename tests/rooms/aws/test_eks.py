"""Clusters of EKS: found by moto's EKS, signed in to by a token that an authenticator would take, in front of a real API server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import logging
import os
import socket
import ssl
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlsplit

import boto3
import pytest

from handler.app import log
from handler.aws.clients import AwsClients
from handler.aws.eks import ENDS, RENEWED, EksClusters
from handler.cluster.api import Api
from handler.cluster.connect import ClusterConnection, connect
from handler.config.settings import Cluster, Eks
from handler.model.errors import ClusterUnavailable, KubeconfigInvalid, ServerPinned
from infra.moto import ACCOUNT, KEYS, REGION, Moto
from tests.patience import PATIENCE
from tests.rooms.cluster.faulty_proxy import Handler, Wire
from tests.rooms.source.certificates import Authority

ROLE = f"arn:aws:iam::{ACCOUNT}:role/anneal"
# What aws-iam-authenticator's verifier lets stand in the URL (pkg/token/token.go), in lower case.
TAKEN = {"action", "version", *(f"x-amz-{name}" for name in ("algorithm", "credential", "date", "expires", "security-token"))}
TAKEN |= {"x-amz-signature", "x-amz-signedheaders"}


def presigned(token: str) -> str:
    """Decode a token as the verifier does: Go's RawURLEncoding takes no padding."""
    assert len(token) <= 4096
    prefix, _, payload = token.partition(".")
    assert prefix == "k8s-aws-v1"
    assert "=" not in payload
    return base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)).decode()


def signature(url: str, cluster: str, secret: str) -> str:
    """Sign the URL once more, by AWS's text about Signature Version 4."""
    parts = urlsplit(url)
    query = {name: value for name, value in parse_qsl(parts.query) if name != "X-Amz-Signature"}
    canonical = "&".join(f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted(query.items()))
    empty = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{canonical}\nhost:{parts.netloc}\nx-k8s-aws-id:{cluster}\n\nhost;x-k8s-aws-id\n{empty}"
    scope = query["X-Amz-Credential"].split("/", 1)[1]
    text = "\n".join(("AWS4-HMAC-SHA256", query["X-Amz-Date"], scope, hashlib.sha256(request.encode()).hexdigest()))
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def test_a_token_is_what_an_authenticator_takes(aws: Moto) -> None:
    assert aws.url
    url = presigned(EksClusters(AwsClients(os.environ)).token(Eks("prod")))
    parts, query = urlsplit(url), dict(parse_qsl(urlsplit(url).query))
    assert (parts.scheme, parts.netloc, parts.path) == ("https", f"sts.{REGION}.amazonaws.com", "/")
    assert {name.lower() for name in query} <= TAKEN
    assert len(query) == len(parse_qsl(parts.query))
    assert (query["Action"], query["X-Amz-Expires"]) == ("GetCallerIdentity", "60")
    assert "x-k8s-aws-id" in query["X-Amz-SignedHeaders"].split(";")
    assert query["X-Amz-Signature"] == signature(url, "prod", KEYS["AWS_SECRET_ACCESS_KEY"])
    assert query["X-Amz-Signature"] != signature(url, "other", KEYS["AWS_SECRET_ACCESS_KEY"]), "the cluster's name is signed"


def test_a_role_is_assumed_first_and_the_token_speaks_for_it(aws: Moto) -> None:
    parts = urlsplit(presigned(EksClusters(AwsClients(os.environ)).token(Eks("prod", "eu-west-1", ROLE))))
    query = dict(parse_qsl(parts.query))
    assert parts.netloc == "sts.eu-west-1.amazonaws.com"
    assert {name.lower() for name in query} <= TAKEN
    assert query["X-Amz-Security-Token"]
    assert query["X-Amz-Credential"].split("/")[0].startswith("ASIA")
    assert "/eu-west-1/sts/aws4_request" in query["X-Amz-Credential"]
    assert aws.url


def test_eks_tokens_are_renewed_before_they_expire_by_one_thread_while_others_use_the_old(
    aws: Moto, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert aws.url
    made, times = EksClusters(AwsClients(os.environ)), [1_000_000.0]
    monkeypatch.setattr("handler.aws.eks.time.time", lambda: times[0])
    monkeypatch.setattr("handler.aws.eks.time.monotonic", lambda: times[0])
    numbers = iter(range(100))
    monkeypatch.setattr(made._aws, "presigned", lambda *_: f"https://sts/{next(numbers)}")
    first = made.token(Eks("prod"))
    times[0] += RENEWED
    assert made.token(Eks("prod")) == first
    times[0] += 1
    assert made.token(Eks("prod")) == first, "whoever asks gets the one that still holds"
    made._renewals[Eks("prod")].join(PATIENCE)
    second = made.token(Eks("prod"))
    assert second != first
    assert made.token(Eks("prod"), fresh=True) not in (first, second)
    third = made.token(Eks("prod"))
    times[0] += ENDS + 1  # frozen meanwhile
    assert made.token(Eks("prod")) not in (first, second, third)
    assert ENDS < 15 * 60


@pytest.fixture
def described(aws: Moto, connection: ClusterConnection, tmp_path: Path) -> Iterator[tuple[Wire, EksClusters]]:
    """A cluster that EKS knows; its address is a wire to the real API server."""
    boto3.client("eks", **aws.client).create_cluster(name="prod", roleArn=ROLE, resourcesVpcConfig={})
    authority = Authority(tmp_path, "eks")
    trusted = base64.b64encode(authority.file.read_bytes()).decode()
    wire = Wire(connection)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.certificate("api"))
    wire.server.socket = tls.wrap_socket(wire.server.socket, server_side=True)
    clusters = EksClusters(AwsClients(os.environ))
    describe = clusters.describe

    def told(eks: Eks) -> tuple[str, str]:
        endpoint, data = describe(eks)
        assert endpoint.startswith("https://")
        assert data
        return wire.url.replace("http:", "https:"), trusted

    clusters.describe = told  # type: ignore[method-assign]  # moto's address leads nowhere
    yield wire, clusters
    wire.close()


def sent(into: list[str], then: Callable[[Handler], bool] = lambda _: True) -> Callable[[Handler], bool]:
    def trick(handler: Handler) -> bool:
        into.append(handler.headers["Authorization"])
        return then(handler)

    return trick


def expired(handler: Handler) -> bool:
    handler.answer(401, {"Content-Type": "application/json"}, b'{"kind": "Status", "code": 401, "reason": "Unauthorized"}')
    return False


def test_a_cluster_is_described_signed_in_to_and_after_a_401_signed_in_to_anew(
    described: tuple[Wire, EksClusters], monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, clusters = described
    renewed: list[Eks] = []
    renew = clusters._renew
    monkeypatch.setattr(clusters, "_renew", lambda eks: renewed.append(eks) or renew(eks))  # type: ignore[func-returns-value]  # for its side effect
    eks = Eks("prod", REGION, ROLE)
    tokens: list[str] = []
    api = Api(connect(Cluster(eks=eks), environ={}, cloud=clusters))
    assert api.connection.source == f"EKS cluster prod in {REGION} as {ROLE}"
    wire.tricks = [sent(tokens), sent(tokens, expired), sent(tokens)]
    namespaces = [(api.get("/api/v1/namespaces/kube-system") or {})["metadata"]["name"] for _ in range(2)]
    assert namespaces == ["kube-system", "kube-system"]
    assert [token.startswith("Bearer k8s-aws-v1.") for token in tokens] == [True] * 3
    assert tokens[0] == tokens[1]
    assert (api.connection.generation, renewed) == (2, [eks, eks]), "the cluster was described anew, and its token made anew"


def test_the_connection_follows_the_token(described: tuple[Wire, EksClusters], monkeypatch: pytest.MonkeyPatch) -> None:
    _, clusters = described
    connection = connect(Cluster(eks=Eks("prod", REGION)), environ={}, cloud=clusters)
    monkeypatch.setattr(connection, "_asked", float("-inf"))
    monkeypatch.setattr(clusters, "token", lambda _eks, fresh: "k8s-aws-v1.next")
    assert connection.authorization() == "Bearer k8s-aws-v1.next"


def test_a_pin_is_for_clusters_of_eks_too(described: tuple[Wire, EksClusters]) -> None:
    _, clusters = described
    with pytest.raises(ServerPinned, match=r"cluster\.server pins https://other"):
        connect(Cluster(eks=Eks("prod", REGION), server="https://other"), environ={}, cloud=clusters)


def test_an_unknown_cluster_is_named_with_its_region(aws: Moto) -> None:
    assert aws.url
    with pytest.raises(KubeconfigInvalid, match=r"EKS cluster none in eu-west-1: isn't known in this region and account"):
        connect(Cluster(eks=Eks("none", "eu-west-1")), environ={}, cloud=EksClusters(AwsClients(os.environ)))


def test_an_eks_cluster_without_an_endpoint_isnt_ready(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    assert aws.url
    clusters = EksClusters(AwsClients(os.environ))
    client = clusters._aws.client("eks", REGION)
    monkeypatch.setattr(client, "describe_cluster", lambda **_: {"cluster": {"status": "CREATING"}})
    with pytest.raises(KubeconfigInvalid, match="has no address yet: it is CREATING; wait until it is ACTIVE"):
        clusters.describe(Eks("prod"))


def test_no_error_and_no_log_line_shows_aws_credentials_or_tokens(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    assert aws.url
    keys = {"AWS_SECRET_ACCESS_KEY": "CANARY-secret-access-key", "AWS_SESSION_TOKEN": "CANARY-session-token"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    stream, root = io.StringIO(), logging.getLogger()
    kept, level = root.handlers[:], root.level
    log.configure(stream)
    root.setLevel(logging.DEBUG)
    clusters, told, token = EksClusters(AwsClients(os.environ)), [], ""
    try:
        for eks in (Eks("none"), Eks("none", "eu-west-1", ROLE)):
            token = clusters.token(eks)
            logging.getLogger("botocore").error("%s %s %s", token, presigned(token), keys, exc_info=ValueError(token))
            with pytest.raises(KubeconfigInvalid) as caught:
                connect(Cluster(eks=eks), environ={}, cloud=clusters)
            told.append("".join(traceback.format_exception(caught.value)) + repr(caught.value))
    finally:
        root.handlers[:] = kept
        root.setLevel(level)
        for logger in ("botocore", "urllib3"):
            logging.getLogger(logger).setLevel(logging.NOTSET)
    shown = stream.getvalue() + "".join(told) + repr(clusters) + repr(vars(clusters))
    assert "botocore" in stream.getvalue()
    for never in ("CANARY", "X-Amz-Signature", "X-Amz-Security-Token", token, token.partition(".")[2]):
        assert never not in shown


def test_an_aws_api_that_hangs_is_cluster_unavailable_after_a_short_timeout(aws: Moto, monkeypatch: pytest.MonkeyPatch) -> None:
    assert aws.url
    monkeypatch.setattr("handler.aws.clients.READ", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(ClusterUnavailable, match=r"EKS cluster prod: can't be looked up: AWS doesn't answer in time"):
            EksClusters(AwsClients(os.environ)).describe(Eks("prod"))
        with pytest.raises(ClusterUnavailable, match=r"EKS cluster prod as arn.*: can't be looked up: AWS doesn't answer in time"):
            EksClusters(AwsClients(os.environ)).token(Eks("prod", "", ROLE))
