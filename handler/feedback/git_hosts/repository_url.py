"""Where a repository is, by the URL that git is fetched from. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_ASIDE = ("ssh.", "altssh.")  # hosts that serve SSH on port 443 beside the one that has the API


@dataclass(frozen=True, slots=True)
class RepositoryUrl:
    """`origin`: scheme and host of what browsers and the API use; `parts`: the path's segments, without `.git`."""

    origin: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> RepositoryUrl:
        """Read an https://, http:// or ssh:// URL; behind SSH the API is at the same host, by HTTPS."""
        found = urlsplit(url)
        host = found.hostname or ""
        host = next((host.removeprefix(each) for each in _ASIDE if host.startswith(each)), host)
        is_ssh = found.scheme == "ssh"
        port = f":{found.port}" if found.port and not is_ssh else ""
        path = unquote(found.path).strip("/").removesuffix(".git").strip("/")
        return cls(f"{'https' if is_ssh else found.scheme}://{host}{port}", tuple(each for each in path.split("/") if each))

    @property
    def name(self) -> str:
        """The path below the host: `acme/shop`."""
        return "/".join(self.parts)
