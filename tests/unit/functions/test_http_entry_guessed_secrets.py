"""What git holds is shown alike, whatever the handler's secrets are: a guess in it is neither confirmed nor refuted, anywhere."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from handler.app import log
from handler.app.commit_statuses.host_lane import DueLook
from handler.app.commit_statuses.posting import StatusPosting
from handler.cli import reports
from handler.cli.output import Output
from handler.config.decryption import Decryption
from handler.config.feedback_settings import GitHubAppAuth
from handler.config.git_settings import BasicAuth, Repository, RepositoryAuth, SecretRef, SshAuth
from handler.config.renderer_settings import ChartSource
from handler.config.secrets import resolve_all
from handler.config.settings import PrometheusSettings, Settings, Target
from handler.feedback.emf import EmfLines
from handler.feedback.log import EventLog
from handler.functions.http_entry import TOKENS, behind
from handler.inspect.inspector import Inspector
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.model.run_event import RunEnded
from handler.source.signin import basic
from handler.web.app import create_app
from tests.fakes.engine import cluster, state_of
from tests.fakes.page_visits import PAGE_SECRETS, URL, the_page
from tests.fakes.signed_webhooks import SECRETS, Kept, door_settings
from tests.unit.app.pull_requests_in_memory import FEEDBACK, REPOSITORY, Pulls

pytestmark = pytest.mark.slow

USER = "x-access-token"
KINDS = ("GIT", "STATUSES", "SSH", "PHRASE", "APP", "CHARTS", "METRICS", "AGE", *SECRETS, *(name for name in PAGE_SECRETS if name != "ADA"))
"""Every kind of secret that a configuration names, by its environment variable; with the last one of the page the test signs in."""
VARIES = re.compile(
    r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z|\+00:00)?|\bshop\.[0-9a-f]{12}\b|\b\d+\.\d+( s)?\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b1[0-9]{9}\b"
    r'|name="(csrf|seen)" value="[^"]*"|\b\d+ s ago\b|just now|\bin \d+ s\b|\b\d+ s\b|M\d+ \d+h\d+v\d+h-\d+z'
)
"""Times, and the bars that show how long runs took."""


def ref(name: str) -> SecretRef:
    return SecretRef(env=name)


def configured() -> Settings:
    """Return a configuration that names secrets of all kinds; its first target has a pull request."""
    door, feedback = door_settings(), replace(FEEDBACK, status=True, token=ref("STATUSES"))
    charts = (ChartSource("https://charts.example.com", BasicAuth("me", ref("CHARTS"))),)
    shop = replace(REPOSITORY, auth=RepositoryAuth(BasicAuth(USER, ref("GIT"))), feedback=feedback)
    ssh = RepositoryAuth(ssh=SshAuth(ref("SSH"), "/etc/known_hosts", ref("PHRASE")))
    app = RepositoryAuth(github_app=GitHubAppAuth("1", 2, ref("APP")))
    targets = (
        Target("shop", shop, ("shop",), path="shop", charts=charts, decryption=Decryption((ref("AGE"),))),
        Target("by-ssh", Repository("ssh://git@git.example.com/a.git", auth=ssh), ("other",)),
        Target("by-app", Repository("https://github.com/a/b.git", auth=app), ("third",)),
        *(each for each in door.targets if each.name == "infra"),
    )
    metrics = (PrometheusSettings("https://prometheus.example.com", ref("METRICS")),)
    return replace(door, targets=targets, prometheus=metrics, page=the_page())


def values(mark: str) -> dict[str, str]:
    """Return a value for each kind, none like another's."""
    return {name: hashlib.sha256(f"{mark} {name}".encode()).hexdigest()[:40] for name in KINDS}


MINE, OTHERS = values("mine"), values("another")


def guesses(cut: int | None) -> list[str]:
    """Return the beginning of each secret, and of what it is sent as."""
    sent = [spelling for value in MINE.values() for spelling in (value, f"Bearer {value}", base64.b64encode(value.encode()).decode())]
    sent += [f"{USER}:{MINE['GIT']}", basic(USER, MINE["GIT"]), f"https://{USER}:{MINE['GIT']}@git.example.com"]
    return [each[: len(each) if cut is None else each.index(each.split(":")[-1][:4]) + cut] for each in sent]


class Shown:
    """One installation with these secrets, and each surface's text after an author has written guesses where he can."""

    def __init__(self, environ: Mapping[str, str], guessed: Sequence[str]) -> None:
        stream, self.settings = io.StringIO(), configured()
        log.configure(stream)
        self.pulls = Pulls(cluster("shop"), self.settings)
        self.handler = self.pulls.handler
        self.handler.secrets = self.secrets = resolve_all(self.settings, {**environ, "ADA": PAGE_SECRETS["ADA"]})
        self.worker = behind(self.settings, self.handler.records, lambda: Inspector(self.handler))
        self.texts: dict[str, str] = {}
        self.results = [self.handler.run(Job("shop", "tick"))]
        self._write(guessed)
        for result in self.results:
            EventLog().hear(RunEnded.of(Job("shop", "tick"), result, 0.1))
        StatusPosting(self.settings, self.handler).look(DueLook("shop", 0.0))
        self._note("statuses", repr(self.pulls.api.statuses))
        self._note("record", repr(state_of(self.handler)))
        self._note("log", stream.getvalue())

    def _write(self, guessed: Sequence[str]) -> None:
        map_ = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"}}
        good = json.dumps({**map_, "data": {f"k{number}": guess for number, guess in enumerate(guessed)}})
        for written in (good, *(json.dumps({**map_, "kind": guess}) for guess in guessed[-3:])):
            self.pulls.proposes({"shop/web.yaml": written})
            self.results.append(self.pulls.run())
            self._note("comments", self.pulls.api.text)
            self.pulls.git.push(self.pulls.git.commit({"shop/web.yaml": written}))
            self._look()
            self.results += [self.handler.run(Job("shop", "oneoff", dry_run=True)), self.handler.run(Job("shop", "tick"))]
        self._look()

    def _look(self) -> None:
        """Look at the pages, and ask what answers programs."""
        counts = EmfLines(lambda _line: None)
        door = create_app(self.settings, self.secrets, Kept(), lambda: True, worker=self.worker, metrics=counts, routes=TOKENS)
        client = door.test_client()
        client.post("/ui/login", data={"token": PAGE_SECRETS["ADA"]}, headers={"Origin": URL}, base_url=URL)
        for place in ("/", *(f"/ui/targets/shop{tab}" for tab in ("", "/gap", "/orphans", "/inventory", "/history"))):
            page = client.get(place, base_url=URL)
            assert page.status_code == 200, (place, page.text)
            self._note("pages", page.text)
        for question in ("target", "targets", "tree", "gap", "orphans"):
            self._note("answers", json.dumps(self.worker.ask(question, name="shop", names=["shop"])))

    def _note(self, surface: str, text: str) -> None:
        self.texts[surface] = self.texts.get(surface, "") + VARIES.sub("?", text)


def printed(results: Sequence[Result], capsys: pytest.CaptureFixture[str]) -> str:
    for result in results:
        for output in (Output(verbose=True), Output(as_json=True)):
            reports.result(output, result)
    told = capsys.readouterr()
    return VARIES.sub("?", told.out + told.err)


@pytest.mark.parametrize("cut", [6, 20, None])
def test_what_is_shown_of_a_guess_does_not_tell_whether_it_is_right(cut: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    guessed = guesses(cut)
    right, wrong = Shown(MINE, guessed), Shown(OTHERS, guessed)
    assert [each.outcome for each in right.results].count(Outcome.FAILED) >= 3
    assert right.results[-1].outcome is Outcome.FAILED
    for surface, text in right.texts.items():
        assert text == wrong.texts[surface], surface
    assert printed(right.results, capsys) == printed(wrong.results, capsys)
    for guess in guessed:
        assert json.dumps(guess)[1:-1] in right.texts["answers"], "it was looked at"
