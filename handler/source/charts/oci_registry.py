"""A chart in an OCI registry, as `helm push` leaves it (OCI distribution spec 1.1; token authentication of the CNCF distribution).

Law: manifest and archive are what their digests say; a token is asked for below a listed prefix or at the registry itself, for pulling this
chart alone whatever the registry says, and given to nothing but this registry.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from handler.model.chart_url import ChartUrl
from handler.model.errors import ChartUnavailable, SourceRefused
from handler.source.bounded_connections import Deadline
from handler.source.charts.chart_http import ChartAnswer, ChartHttp, ChartRequest, denied
from handler.source.charts.chart_sources import ListedSource

CONFIG = "application/vnd.cncf.helm.config.v1+json"
ARCHIVE = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
SHA256 = re.compile(r"sha256:[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_PARAMETER = re.compile(r'([A-Za-z]+)="([^"]*)"')
_BEARER = re.compile(r"(?:^|,)\s*bearer\s+(.*)", re.IGNORECASE)
_NEXT = re.compile(r'<([^<>]*)>\s*;\s*rel="?next"?', re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=:|-]{1,16384}")
_CHALLENGED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class ChartLayer:
    """Where a manifest says the archive is."""

    digest: str
    size: int


class OciRegistry:
    """One chart of a registry, during one operation. `subject`: of errors; `source`: the prefix that covers it."""

    def __init__(self, http: ChartHttp, url: ChartUrl, source: ListedSource, deadline: Deadline, subject: str) -> None:
        """Raises SourceRefused: the path is no name of a repository."""
        self._name = url.path.removeprefix("/")
        if not _NAME.fullmatch(self._name) or len(self._name) > 255:
            raise SourceRefused.of(subject, f"{url} names no repository of a registry", fix="write oci://<host>/<path>/<chart>")
        self._http = http
        self._source = source
        self._deadline = deadline
        self._subject = subject
        api = source.api
        self._base = ChartUrl(api.scheme, api.host, api.port, f"/v2/{self._name}")
        self._authorization: str | None = ""  # None: the source's own, for a registry that asks for Basic

    def versions(self) -> list[str]:
        """Return the tags, as versions. Raises ChartUnavailable, AccessDenied, ChartNotAllowed."""
        found: list[str] = []
        size, seen = 0, set[str]()
        page: ChartUrl | None = self._base.below("tags/list", "n=1000")
        while page:
            seen.add(page.query)
            answer = self._get(page, self._http.limits.tags - size)
            size += len(answer.body)
            tags = self._json(answer).get("tags") or []
            if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
                raise self._nonsense(answer, "no list of tags")
            found += [tag.replace("_", "+") for tag in tags]
            page = self._next(page, answer)
            if page and (page.query in seen or len(seen) >= self._http.limits.pages):
                raise self._nonsense(answer, "a list of tags that doesn't end")
        return found

    def layer(self, version: str) -> ChartLayer:
        """Return where the archive of a version is. Raises ChartUnavailable: no such version, or no chart; AccessDenied."""
        tag = version.replace("+", "_")
        if not _TAG.fullmatch(tag):
            raise ChartUnavailable.of(self._subject, "its version can't be a tag of a registry")
        answer = self._get(self._base.below(f"manifests/{tag}"), self._http.limits.manifest, MANIFEST)
        digest, declared = _digest(answer.body), answer.headers.get("Docker-Content-Digest", "")
        if SHA256.fullmatch(declared) and declared != digest:
            raise self._nonsense(answer, f"a manifest of digest {digest} for {declared}")
        return self._read(answer)

    def archive(self, layer: ChartLayer) -> bytes:
        """Return the archive. Raises ChartUnavailable: it isn't what the manifest says; AccessDenied, ChartNotAllowed."""
        answer = self._get(self._base.below(f"blobs/{layer.digest}"), layer.size)
        if len(answer.body) != layer.size or _digest(answer.body) != layer.digest:
            raise self._nonsense(answer, f"{len(answer.body):,} bytes of {_digest(answer.body)}, not {layer.size:,} of {layer.digest}")
        return answer.body

    def _read(self, answer: ChartAnswer) -> ChartLayer:
        manifest = self._json(answer)
        config, layers = manifest.get("config"), manifest.get("layers")
        kind = config.get("mediaType") if isinstance(config, dict) else None
        if kind != CONFIG or not isinstance(layers, list):
            raise self._nonsense(answer, "something else than a Helm chart")
        archives = [each for each in layers if isinstance(each, dict) and each.get("mediaType") == ARCHIVE]
        if len(archives) != 1:
            raise self._nonsense(answer, f"a chart of {len(archives)} archives")
        digest, size = archives[0].get("digest"), archives[0].get("size")
        if not isinstance(digest, str) or not SHA256.fullmatch(digest) or type(size) is not int or size < 1:
            raise self._nonsense(answer, "an archive without a sha256 or a size")
        if size > self._http.limits.archive:
            raise self._nonsense(answer, f"an archive of {size:,} bytes; at most {self._http.limits.archive:,} are fetched")
        return ChartLayer(digest, size)

    def _next(self, page: ChartUrl, answer: ChartAnswer) -> ChartUrl | None:
        """Return the next page of tags: of this list, nothing else."""
        found = _NEXT.search(answer.headers.get("Link", ""))
        if not found:
            return None
        try:
            url = page.joined(found[1])
        except ValueError as wrong:
            raise self._nonsense(answer, f"a next page that {wrong}") from None
        if url.origin != page.origin or url.path != page.path:
            raise self._nonsense(answer, "a next page elsewhere")
        return url

    def _get(self, url: ChartUrl, most: int, accept: str = "*/*") -> ChartAnswer:
        """Ask the registry; sign in once, as it wants."""
        request = ChartRequest(url, self._source, most, accept, self._authorization, _CHALLENGED)
        answer = self._http.get(self._deadline, request, self._subject)
        if answer.status == 200:
            return answer
        if self._authorization != "" or answer.url.origin != url.origin:
            raise denied(answer.status, answer.asked, self._source, self._subject)
        self._authorization = self._signed_in(answer)
        request = ChartRequest(url, self._source, most, accept, self._authorization)
        return self._http.get(self._deadline, request, self._subject)

    def _signed_in(self, answer: ChartAnswer) -> str | None:
        """Return what a registry's challenge leads to: a token; None: the source's own credentials."""
        challenge = answer.headers.get("WWW-Authenticate", "")
        bearer = _BEARER.search(challenge)
        if not bearer:
            if not self._source.sign_in.named:
                raise denied(answer.status, answer.asked, self._source, self._subject)
            return None
        parameters = {name.lower(): value for name, value in _PARAMETER.findall(bearer[1])}
        try:
            realm = ChartUrl.of(parameters.get("realm", ""))
        except ValueError as wrong:
            raise self._nonsense(answer, f"a token service that {wrong}") from None
        return f"Bearer {self._token(realm, parameters.get('service', ''))}"

    def _token(self, realm: ChartUrl, service: str) -> str:
        """Ask a token service, with the credentials of the prefix that covers it; the registry's where it is the registry itself."""
        source = self._http.sources.covering(realm)
        if source is None and realm.origin == self._base.origin:
            source = self._source
        if source is None:
            source = self._http.sources.needed(realm, self._subject, f"{self._base} asks for a token of", told=True)
        form = urlencode({"scope": f"repository:{self._name}:pull", **({"service": service} if service else {})})
        url = ChartUrl.of(f"{realm}?{realm.query}{'&' if realm.query else ''}{form}")
        request = ChartRequest(url, source, self._http.limits.token, shown=f"the token service of {self._base}")
        answer = self._http.get(self._deadline, request, self._subject)
        body = self._json(answer)
        token = body.get("token") or body.get("access_token")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise self._nonsense(answer, "no token")
        return token

    def _json(self, answer: ChartAnswer) -> dict[str, Any]:
        try:
            found = json.loads(answer.body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._nonsense(answer, "no JSON object")
        return found

    def _nonsense(self, answer: ChartAnswer, seen: str) -> ChartUnavailable:
        return ChartUnavailable.of(self._subject, f"{answer.asked} answers {seen}")


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
