"""What a real Gitea sends of a pull request's life. `python -m tests.rooms.source.gitea_events` writes our samples of it anew.

A sample is a body byte for byte and, beside it, the headers that came with it; the secret of their signature is the one of our tests.
"""

from __future__ import annotations

from collections.abc import Iterator

from infra.giteahost import GiteaHost
from infra.gitwork import Work
from tests.fakes.host_webhooks import KEYS, SAMPLES_DIRECTORY
from tests.webhook_inbox import Delivery, Inbox

ADDRESS = "https://git.example.com"
EVENTS = ("push", "pull_request", "issue_comment")
SAMPLES = SAMPLES_DIRECTORY / "gitea"
_HOP = ("Host", "Connection", "Accept-Encoding")
"""Headers of the way, not of the delivery."""

Named = tuple[str, Delivery]


class PullRequests:
    """acme/shop: ada may write to it, bob may read it and has a fork. Each step of a pull request's life is one delivery, by name."""

    def __init__(self, host: GiteaHost, inbox: Inbox) -> None:
        self._host, self._inbox, self._seen = host, inbox, 0
        self.ada, self.bob = host.user("ada"), host.user("bob")
        host.organization("acme", host.admin)
        self.shop = host.repository("acme", "shop", private=True)
        host.collaborator(self.shop, self.ada, "write")
        host.collaborator(self.shop, self.bob, "read")
        self.work = host.work(self.shop, self.ada)
        self.work.write("deploy/web.yaml", "kind: ConfigMap\n").commit("Add the web")
        self.work.push()
        self.work.push(ref="HEAD:refs/heads/release")
        host.webhook(self.shop, inbox.url, KEYS["GITEA"], EVENTS)

    def life(self) -> Iterator[Named]:
        """Yield each delivery under its sample's name."""
        yield from self._merged()
        yield from self._closed()
        yield from self._of_a_fork()
        self._host.api("POST", f"/repos/{self.shop}/issues", {"title": "A question"}, self.bob.token)
        number = self._host.rows(f"/repos/{self.shop}/issues?type=issues")[0]["number"]
        self._host.comment(self.shop, number, "An answer", self.ada)
        yield self._come("issue_comment", "created", "issue")

    def _merged(self) -> Iterator[Named]:
        host, shop, ada = self._host, self.shop, self.ada
        self._push(self.work, "replicas", "replicas: 2\n", "Raise the web's replicas")
        number = host.open_pull_request(shop, ada, "replicas", title="Raise the web's replicas", body="It is slow.")
        yield self._come("pull_request", "opened")
        self._push(self.work, "replicas", "replicas: 3\n", "Raise them further")
        yield self._come("pull_request", "synchronized")
        host.edit_pull_request(shop, number, ada, title="Raise the replicas of the web")
        yield self._come("pull_request", "edited", "title")
        host.edit_pull_request(shop, number, ada, base="release")
        yield self._come("pull_request", "edited", "base")
        comment = host.comment(shop, number, "/anneal plan", self.bob)
        yield self._come("issue_comment", "created")
        host.edit_comment(shop, comment, "/anneal plan shop", self.bob)
        yield self._come("issue_comment", "edited")
        host.delete_comment(shop, comment, self.bob)
        yield self._come("issue_comment", "deleted")
        host.merge_pull_request(shop, number, ada)
        yield self._come("pull_request", "closed", "merged")

    def _closed(self) -> Iterator[Named]:
        self._push(self.work, "limits", "memory: 1Gi\n", "Limit the web's memory")
        number = self._host.open_pull_request(self.shop, self.ada, "limits")
        self._come("pull_request", "opened")
        self._host.edit_pull_request(self.shop, number, self.ada, state="closed")
        yield self._come("pull_request", "closed")
        self._host.edit_pull_request(self.shop, number, self.ada, state="open")
        yield self._come("pull_request", "reopened")

    def _of_a_fork(self) -> Iterator[Named]:
        fork = self._host.fork(self.shop, self.bob)
        self._push(self._host.work(fork, self.bob), "idea", "color: green\n", "Paint the web")
        self._host.open_pull_request(self.shop, self.bob, "bob:idea")
        yield self._come("pull_request", "opened", "fork")

    def _push(self, work: Work, branch: str, text: str, message: str) -> None:
        work.git("checkout", "-q", "-B", branch)
        work.write(f"deploy/{branch}.yaml", text).commit(message)
        work.push(ref=f"HEAD:refs/heads/{branch}")

    def _come(self, event: str, action: str, which: str = "") -> Named:
        """Wait for the next delivery of an event and action."""
        found = self._inbox.wait(
            lambda each: each.headers["X-Gitea-Event"] == event and each.document["action"] == action, after=self._seen
        )
        self._seen = self._inbox.deliveries.index(found) + 1
        return f"{event}-{action}" + (f"-{which}" if which else ""), found


def main() -> None:
    """Write the samples."""
    with GiteaHost(ADDRESS) as host, Inbox() as inbox:
        for name, delivery in PullRequests(host, inbox).life():
            (SAMPLES / f"{name}.json").write_bytes(delivery.body)
            lines = [f"{key}: {value}\n" for key, value in delivery.headers.items() if key not in _HOP]
            (SAMPLES / f"{name}.headers").write_text("".join(lines))


if __name__ == "__main__":
    main()
