"""What to set up at each git host so that its webhooks arrive, as `anneal init` says it: one row a provider of `handler.triggers`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

NONE = "none"  # no webhooks: git is looked at each interval


@dataclass(frozen=True, slots=True)
class Host:
    """One provider. `known_by`: words that its hosts' names hold; `steps`: what to set up there, with a webhook's `url` and `secret`."""

    title: str
    steps: str
    known_by: tuple[str, ...] = ()


HOSTS: Mapping[str, Host] = {
    "github": Host(
        "GitHub",
        """\
Settings, Webhooks, Add webhook
  Payload URL    {url}
  Content type   application/json
  Secret         the value of {secret}
  Events         Just the push event
""",
        ("github",),
    ),
    "gitlab": Host(
        "GitLab",
        """\
Settings, Webhooks, Add new webhook
  URL            {url}
  Secret token   the value of {secret}
  Trigger        Push events; Tag push events for a target that follows tags
  SSL            verification stays enabled
""",
        ("gitlab",),
    ),
    "gitea": Host(
        "Gitea or Forgejo",
        """\
Settings, Webhooks, Add Webhook, Gitea (or Forgejo)
  Target URL         {url}
  HTTP Method        POST
  POST Content Type  application/json
  Secret             the value of {secret}
  Trigger On         Push Events
""",
        ("gitea", "forgejo", "codeberg"),
    ),
    "bitbucket": Host(
        "Bitbucket",
        """\
Repository settings, Webhooks, Add webhook (Data Center: Create webhook)
  Title          Anneal (Data Center: Name)
  URL            {url}
  Secret         the value of {secret}
  Status         Active
  Triggers       Repository push (Data Center: Repository, Push)
""",
        ("bitbucket",),
    ),
    "azuredevops": Host(
        "Azure DevOps",
        """\
Project settings, Service hooks, Create subscription, Web Hooks
  Trigger                        Code pushed
  URL                            {url}
  Basic authentication username  any
  Basic authentication password  the value of {secret}
  Resource details to send       All
""",
        ("dev.azure.com", "visualstudio.com"),
    ),
    "generic": Host(
        "whatever can sign",
        """\
send each push like this:
  body={body}
  sum="$(printf %s "$body" |
    openssl dgst -sha256 -hmac "${secret}" -r)"
  curl {url} \\
    -H 'Content-Type: application/json' \\
    -H "X-Signature-256: sha256=${{sum%% *}}" -d "$body"
""",
    ),
}
_OTHER = """\
  URL            {url}
  Secret         the value of {secret}
"""


def of(provider: str) -> Host:
    """Return a provider's row; of one that a program of its own has added, what holds for any."""
    return HOSTS.get(provider, Host(provider, _OTHER))


def guess(url: str, known: Collection[str]) -> str:
    """Return which of the known providers a repository's URL looks like; NONE where no provider does."""
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2].lower()
    return next((name for name, row in HOSTS.items() if name in known and any(word in host for word in row.known_by)), NONE)


def variable(provider: str) -> str:
    """Return the environment variable of a provider's webhook secret."""
    return f"{provider.upper()}_WEBHOOK_SECRET"
