"""Rows of `doctor` about a running server: whether it and its worker are there, its version, whether it knows the targets."""

from __future__ import annotations

from handler import __version__
from handler.cli.check_table import Findings
from handler.cli.errors import ServerUnavailable
from handler.cli.server_client import ServerClient
from handler.cli.session import Session
from handler.config.secret_mask import Mask
from handler.model.errors import AccessDenied, Problem
from handler.model.numbers import many

_TOKEN = "export ANNEAL_TOKEN=VALUE, of one of its `replay.tokens` that may read"  # noqa: S105 - says where a token is found


def look(session: Session, findings: Findings, url: str, ca_file: str, *, insecure_http: bool, names: list[str]) -> None:
    """Ask a server. `url`: empty: none is known. `names`: the targets that it should know."""
    if not url:
        findings.skip("server", "none is asked: ANNEAL_SERVER names none")
        return
    token = session.environ.get("ANNEAL_TOKEN", "").strip()
    if token:
        _hide(session, token)
    remote: list[ServerClient] = []

    def reach() -> str:
        remote.append(ServerClient(url, token, ca_file, insecure_http=insecure_http or not token))
        return _worker(remote[0])

    if not findings.step("server", reach):
        return
    if not token:
        findings.warn("its targets", "ANNEAL_TOKEN isn't set, so they aren't asked for", _TOKEN)
        return
    try:
        _targets(remote[0], names, findings)
    except AccessDenied as error:
        findings.warn("its targets", error.problems[0].message, _TOKEN)


def _hide(session: Session, token: str) -> None:
    """Let nothing that is printed from now on show the token."""
    before, mask = session.output.mask, Mask.of([token], [])
    session.output.mask = lambda text: mask(before(text))


def _worker(remote: ServerClient) -> str:
    """Return how it does. Raises ServerUnavailable: it isn't there, or its worker isn't; ServerRefused."""
    try:
        worker = remote.worker()
    except ServerUnavailable as error:
        fix = f"see whether `anneal serve` runs there: curl -i {remote.url}/readyz"
        raise ServerUnavailable(*(Problem(each.subject, each.message, fix=each.fix or fix) for each in error.problems)) from error
    if worker != "ok":
        fix = "its log says why the worker process ended; it is started again by itself, or with `anneal serve`"
        raise ServerUnavailable.of(
            "server", f"{remote.url} is there and takes deliveries, but its worker is {worker}: nothing runs", fix=fix
        )
    return f"{remote.url} is ready, its worker too"


def _targets(remote: ServerClient, names: list[str], findings: Findings) -> None:
    """Note its version, and which of these targets it doesn't show. Raises AnnealError."""
    shown, version, after = set(), "", ""
    while True:
        page = remote.get("api", "targets", **({"after": after} if after else {}))
        version = str(page.get("version") or "unknown")
        shown |= {str(row.get("target")) for row in page.get("targets") or () if isinstance(row, dict)}
        if not isinstance(page.get("next"), str) or page["next"] <= after:
            break
        after = page["next"]
    missing = [name for name in names if name not in shown]
    told = f"version {version}, {many(len(shown), 'target')}"
    if missing:
        fix = "restart it with this configuration, or let the token's `targets` name them"
        findings.warn("its targets", f"{told}; it doesn't show {', '.join(missing)}", fix)
    elif version != __version__:
        findings.warn("its targets", f"{told}; this is {__version__}", "install the same version on both sides")
    else:
        findings.good("its targets", told)
