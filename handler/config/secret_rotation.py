"""Secrets that follow their places, without a restart: a file's new content within a second, a store's within `secretsInterval`.

Law: a snapshot is replaced, whole, never changed. What has no usable value any more keeps the one it had, and one line in the log says so.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Collection, Mapping

from handler.config.git_settings import SecretRef
from handler.config.remote_secrets import Fetch, RemoteSecrets, SecretClocks, nowhere
from handler.config.secrets import ALL, Accepted, Need, PageSecrets, Secret, Secrets, references, renewed
from handler.config.settings import ReplayToken, Settings
from handler.model.errors import Problem, SecretUnavailable

EVERY = 1.0
"""Seconds between looks at the files, by the clock that passes faster: a frozen function has only one of them."""
_FRESH = 2.0
"""A file written so few seconds ago may be written again without its time changing (as git's index has it): it is read once more."""
_LOG = logging.getLogger("anneal.secrets")


class Rotation:
    """The present secrets of a configuration. Safe to share between threads; one that looks at the places makes no other wait."""

    def __init__(
        self,
        settings: Settings,
        environ: Mapping[str, str],
        *,
        needs: Collection[Need] = ALL,
        fetch: Fetch = nowhere,
        clocks: SecretClocks | None = None,
    ) -> None:
        """Resolve everything, as `resolve_all` does. `clocks`: after a second by either its places are looked at."""
        self._settings, self._environ, self._needs, self._clocks = settings, environ, frozenset(needs), clocks or SecretClocks()
        self._files = sorted({ref.file for ref in references(settings, needs) if ref.file})
        self._remote = RemoteSecrets(references(settings, needs), fetch, settings.secrets_interval, self._clocks)
        self._seen = self._look()  # before anything is read: what changes meanwhile is read again
        self._secrets, problems = renewed(settings, environ, {}, needs=self._needs, fetch=self._remote)
        if problems:
            raise SecretUnavailable(*problems)
        self._said: tuple[Problem, ...] = ()
        self._looked = self._clocks.now()
        self._lock = threading.Lock()

    def present(self) -> Secrets:
        """Return what counts now, as one snapshot; looks at its places at most once a second, and waits for none of them long."""
        if self._clocks.passed(self._looked, EVERY) and self._lock.acquire(blocking=False):
            try:
                self._renew()
            finally:
                self._lock.release()
        return self._secrets

    def webhook(self, provider: str) -> tuple[Accepted, ...]:
        """Return the secrets a provider's deliveries may be signed with now."""
        return self.present().webhook(provider)

    def token(self, candidate: bytes) -> ReplayToken | None:
        """Return the replay token that was presented."""
        return self.present().token(candidate)

    def page(self) -> PageSecrets | None:
        """Return what signs people in to the page now; None: there is no page."""
        return self.present().page()

    def read(self, ref: SecretRef) -> Secret:
        """Return a secret as its file has it now. Raises SecretUnavailable: it isn't one of this configuration."""
        with self._lock:
            self._renew()
        return self._secrets.read(ref)

    def again(self, ref: SecretRef) -> Secret:
        """Return a secret after it was refused: a store is asked before its turn, too, but not at each refusal. Raises as `read`."""
        with self._lock:
            self._remote.make_due(ref)
            self._renew()
        return self._secrets.read(ref)

    def _renew(self) -> None:
        """Replace the snapshot if a file has changed, or a store was asked. Only under the lock."""
        self._looked = self._clocks.now()
        self._remote.renew()
        seen = self._look()
        if seen == self._seen and None not in seen.values():
            return
        old = self._secrets
        secrets, problems = renewed(self._settings, self._environ, old.known, needs=self._needs, fetch=self._remote)
        changed = _changed(old.known, secrets.known)
        self._secrets, self._seen = secrets, seen
        self._log(changed, problems)

    def _look(self) -> dict[str, tuple[int, ...] | None]:
        """Return a stamp of each file, and the stores' rounds, to compare with the last ones; None: not certain, read it again."""
        return {**{file: _stamp(file) for file in self._files}, "": (self._remote.rounds,)}

    def _log(self, changed: Collection[str], problems: tuple[Problem, ...]) -> None:
        if changed:
            _LOG.info("secrets are renewed", extra={"fields": {"secrets": changed}})
        if problems != self._said:
            self._said = problems
            if problems:
                _LOG.warning("a secret can't be renewed; the one before still counts", extra={"fields": {"seen": list(map(str, problems))}})


def _changed(old: Mapping[SecretRef, Secret], new: Mapping[SecretRef, Secret]) -> list[str]:
    values = [{ref: secret.reveal() for ref, secret in each.items()} for each in (old, new)]
    return sorted(str(ref) for ref in {*old, *new} if values[0].get(ref) != values[1].get(ref))


def _stamp(file: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)  # noqa: PTH116 - a string, as configured
    except OSError as error:
        return (error.errno or 0,)
    if time.time() - found.st_mtime < _FRESH:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
