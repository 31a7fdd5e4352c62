"""How HTTP requests sign in. A value is read anew for each request, so a rotated one counts."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from typing import Protocol

from handler.config.git_settings import BasicAuth, SecretRef
from handler.config.secrets import resolve


class Revealing(Protocol):
    """A secret that shows itself only when asked."""

    def reveal(self) -> str:
        """Return the value."""


ReadSecret = Callable[[SecretRef], Revealing]  # reads a reference's present value. Raises SecretUnavailable


def from_environment(ref: SecretRef) -> Revealing:
    """Read a reference by this process's own environment. Raises SecretUnavailable."""
    return resolve(ref, os.environ)


class SignIn(Protocol):
    """What signs a request in. Safe to share between threads. `named`: the credentials in messages; empty: none."""

    named: str

    def authorization(self) -> str:
        """Return the header's present value; empty: none. Raises OperatorError, TransientError."""

    def refused(self, authorization: str) -> bool:
        """Note that the host refused this value; return whether there is another one now."""


class Anonymous:
    """No credentials."""

    named = ""

    def authorization(self) -> str:
        """Return nothing."""
        return ""

    def refused(self, authorization: str) -> bool:  # noqa: ARG002 - the port's argument
        """Return that there is nothing else."""
        return False


class Basic:
    """A user name and a password or token (RFC 7617)."""

    def __init__(self, auth: BasicAuth, read: ReadSecret, again: ReadSecret | None = None) -> None:
        """`again` re-reads a refused password, which may have been rotated."""
        self.named = f"auth.basic: user {auth.username}, password of {auth.password}"
        self._auth = auth
        self._read = read
        self._again = again or read

    def authorization(self) -> str:
        """Read the password and make the header's value."""
        return basic(self._auth.username, self._read(self._auth.password).reveal())

    def refused(self, authorization: str) -> bool:
        """Say whether the password was rotated since."""
        return basic(self._auth.username, self._again(self._auth.password).reveal()) != authorization


class Token:
    """A token in a header of its own form: `Bearer <token>`, or what another host wants."""

    def __init__(
        self, ref: SecretRef, named: str, read: ReadSecret, again: ReadSecret | None = None, form: Callable[[str], str] = "Bearer {}".format
    ) -> None:
        """`again` re-reads a refused token, which may have been rotated; `form` makes the header's value of it."""
        self.named = f"{named}: token of {ref}"
        self._ref, self._form = ref, form
        self._read, self._again = read, again or read

    def authorization(self) -> str:
        """Read the token and make the header's value."""
        return self._form(self._read(self._ref).reveal())

    def refused(self, authorization: str) -> bool:
        """Say whether the token was rotated since."""
        return self._form(self._again(self._ref).reveal()) != authorization


def basic(username: str, password: str) -> str:
    """Return the value of an Authorization header (RFC 7617)."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()
