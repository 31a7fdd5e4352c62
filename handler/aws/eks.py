"""Clusters of Amazon EKS: their address, their certificate authority, and tokens.

A token is `k8s-aws-v1.` and the base64url of a presigned request to STS's GetCallerIdentity with the cluster's name in a signed header
(aws-iam-authenticator, pkg/token). STS accepts it for 15 minutes whatever X-Amz-Expires says; authenticators require 0 to 900. Signing
needs no request.
"""

from __future__ import annotations

import base64
import contextlib
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from handler.aws.clients import AwsClients, asked
from handler.config.settings import Eks
from handler.model.errors import AnnealError, KubeconfigInvalid

PREFIX, HEADER, EXPIRES = "k8s-aws-v1.", "x-k8s-aws-id", 60
QUERY = "Action=GetCallerIdentity&Version=2011-06-15"
RENEWED, ENDS = 600.0, 840.0  # seconds after which a token is renewed in the background, and after which it isn't used any more


@dataclass(frozen=True, slots=True)
class _Made:
    """A token and its time on two clocks: monotonic time stops while a function is frozen, wall time may be set."""

    token: str = field(repr=False)
    monotonic: float
    wall: float

    @property
    def age(self) -> float:
        return max(time.monotonic() - self.monotonic, time.time() - self.wall)


class EksClusters:
    """Describes EKS clusters and makes their tokens. Safe to share between threads; clusters don't wait for each other."""

    def __init__(self, aws: AwsClients) -> None:
        self._aws = aws
        self._made: dict[Eks, _Made] = {}
        self._renewals: dict[Eks, threading.Thread] = {}

    def describe(self, eks: Eks) -> tuple[str, str]:
        """Return a cluster's address and its authority's PEM in base64. Raises KubeconfigInvalid, AccessDenied, ClusterUnavailable."""
        subject = str(eks)

        def ask() -> Any:
            region = self._aws.region(eks.region, subject, KubeconfigInvalid)
            return self._aws.client("eks", region, eks.role).describe_cluster(name=eks.cluster)

        cluster = asked(subject, _allowed(eks), ask, KubeconfigInvalid)["cluster"]
        endpoint, authority = cluster.get("endpoint"), (cluster.get("certificateAuthority") or {}).get("data")
        if not endpoint or not authority:
            seen = f"has no address yet: it is {cluster.get('status', 'in an unknown state')}"
            raise KubeconfigInvalid.of(subject, seen, fix="wait until it is ACTIVE")
        return str(endpoint), str(authority)

    def token(self, eks: Eks, *, fresh: bool = False) -> str:
        """Return a token valid for some minutes more. Raises KubeconfigInvalid, AccessDenied, ClusterUnavailable."""
        made = self._made.get(eks)
        if made is None or fresh or made.age > ENDS:
            return self._renew(eks)
        thread = self._renewals.get(eks)
        if made.age > RENEWED and not (thread and thread.is_alive()):
            self._renewals[eks] = threading.Thread(target=self._quietly, args=(eks,), name="eks token", daemon=True)
            self._renewals[eks].start()
        return made.token

    def _quietly(self, eks: Eks) -> None:
        with contextlib.suppress(AnnealError):
            self._renew(eks)

    def _renew(self, eks: Eks) -> str:
        subject, moment = str(eks), (time.monotonic(), time.time())

        def sign() -> str:
            region = self._aws.region(eks.region, subject, KubeconfigInvalid)
            return self._aws.presigned("sts", QUERY, {HEADER: eks.cluster}, region, eks.role, EXPIRES)

        url = asked(subject, _allowed(eks), sign, KubeconfigInvalid)
        token = PREFIX + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
        self._made[eks] = _Made(token, *moment)
        return token


def _allowed(eks: Eks) -> dict[str, str]:
    return {"DescribeCluster": f"arn:aws:eks:*:*:cluster/{eks.cluster}", "AssumeRole": eks.role}
