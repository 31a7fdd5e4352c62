"""Where a repository is, by the URL that git is fetched from. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from handler.model.errors import ConfigInvalid

_ASIDE = ("ssh.", "altssh.")  # hosts that serve SSH on port 443 beside the one that has the API
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class RepositoryUrl:
    """`origin`: scheme and host of what browsers and the API use; `parts`: the path's segments, without `.git`; `url`: what was read."""

    origin: str
    parts: tuple[str, ...]
    url: str = ""

    @classmethod
    def of(cls, url: str) -> RepositoryUrl:
        """Read an https://, http:// or ssh:// URL; behind SSH the API is at the same host, by HTTPS. Raises ConfigInvalid."""
        try:
            found = urlsplit(url)
            port = found.port
        except ValueError:
            raise ConfigInvalid.of("repository.url", "isn't a URL") from None
        host, is_ssh = found.hostname or "", found.scheme == "ssh"
        if is_ssh:
            host = next((host.removeprefix(each) for each in _ASIDE if host.startswith(each)), host)
        shown = f"[{host}]" if ":" in host else host
        at = "" if is_ssh or not port or port == _PORTS.get(found.scheme) else f":{port}"
        path = unquote(found.path).strip("/").removesuffix(".git").strip("/")
        return cls(f"{'https' if is_ssh else found.scheme}://{shown}{at}", tuple(each for each in path.split("/") if each), url)

    @property
    def is_ssh(self) -> bool:
        """Whether git is spoken over SSH there."""
        return self.url.startswith("ssh://")

    @property
    def name(self) -> str:
        """The path below the host, as a URL has it: `acme/shop`."""
        return quote("/".join(self.parts))

    def last_two(self) -> tuple[str, str]:
        """Return the last two segments, as a URL has them: whose it is, and its name. Raises ConfigInvalid: there are fewer."""
        if len(self.parts) < 2:
            raise self.unlike("<owner>/<repository>")
        owner, name = self.parts[-2:]
        return quote(owner), quote(name)

    def below(self, *parts: str) -> str:
        """Return the URL of a path on the host."""
        return "/".join((self.origin, *map(quote, parts)))

    def unlike(self, shape: str) -> ConfigInvalid:
        """Return the error of a URL whose path isn't as the host has them."""
        return ConfigInvalid.of("repository.url", f"its path isn't {shape}, as that host has them", fix="correct it, or feedback.host")
