"""Keeps open pages live: one thread asks the worker what has changed, renders it once for all viewers, and publishes what differs.

    worker: changes  ->  what is due: targets, target  ->  render  ->  fragments that differ  ->  the streams that may see them

Law: the thread lives only while there are viewers, and no number of them costs a question more. A fragment depends on no viewer; its target
decides which viewers get it. What a feed misses (a run elsewhere, a worker that is away) is healed by its next look at
the records. A question without an answer is its topic's trouble; `changes` without one is that of all.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from handler.feedback.live_runs import ENDED
from handler.model.errors import StateInvalid, WorkerUnavailable
from handler.model.instance import is_target_name, template_of
from handler.web.page.overview import OVERVIEW
from handler.web.status_api import AskWorker

if TYPE_CHECKING:  # functions have no gunicorn, and no streams
    from handler.web.connection import EventStream
    from handler.web.event_streams import EventStreams

_LOG = logging.getLogger("anneal.page")
ROW = "row-"
"""How the id of a target's row in the overview begins."""
EVERY = 10.0  # seconds between two looks at the records of open topics
PACE = 0.5  # seconds between two updates of a topic, at least
WAIT = 2.0  # seconds that the worker waits for a change: no longer, for a topic that is opened meanwhile waits, too
AWAY = 2.0  # seconds until a worker that doesn't answer is asked again
SELDOM = 3.0  # times as long between two looks at a target whose cluster doesn't answer: each waits for it, and others behind that
AT_ONCE = 20
"""Targets that are asked for before others are published; of more than these each is looked at less often, unless it changes."""
FEW = 3  # changed rows that cost a cluster less by a GET each than by a LIST of all
_AGE = frozenset({"seen", "age"})  # of a row: they differ at each look
_GROWN = re.compile(r"(<time [^>]*>)[^<]*")
"""How long ago something was: browsers count on by themselves."""
_OF_RUN = frozenset({"written", "total", "stages"})  # of a picture: they say nothing of the record
Json = dict[str, Any]
Render = Callable[[str, Any], Mapping[str, str]]
"""Renders a topic's data: fragments by the id of the element that each replaces."""


@dataclass(eq=False, slots=True)
class _Viewer:
    seen: frozenset[str]
    stream: EventStream


@dataclass(frozen=True, slots=True)
class _Fragment:
    html: str
    event: bytes
    version: int
    target: str


@dataclass(eq=False, slots=True)
class _Topic:
    """What changes of one page. `away`: its last question had no answer, and its viewers know.

    `due`: when its records are looked at, in monotonic seconds; `record`: the last answer of a target's, `rows` those of an overview.
    """

    name: str
    due: float = 0.0
    viewers: set[_Viewer] = field(default_factory=set)
    fragments: dict[str, _Fragment] = field(default_factory=dict)
    rows: dict[str, Json] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    record: Json | None = None
    stale: bool = True
    away: bool = False

    @property
    def troubled(self) -> bool:
        """Whether the target couldn't be read when it was looked at last."""
        return self.away or bool(self.record and self.record.get("trouble"))

    def busy(self, now: float) -> bool:
        """Whether it is looked at now; one whose question had no answer waits until it is due."""
        return self.due <= now or bool(self.changed and not self.away)


class LiveFeed:
    """The feed of one process. `ask`: puts questions to the worker; `render`: see `Render`; `names`: of all configured targets."""

    def __init__(self, ask: AskWorker, render: Render, names: Collection[str]) -> None:
        self._ask, self._render, self._names = ask, render, frozenset(names)
        self._life, self._version = uuid.uuid4().hex[:12], 0
        self._boot, self._since = "", 0
        self._live: dict[str, Json | None] = {}
        self._away = False
        self._lock = threading.Lock()
        self._topics: dict[str, _Topic] = {}
        self._streams: EventStreams | None = None
        self._thread: threading.Thread | None = None
        self._left = threading.Event()

    # --- viewers
    @property
    def position(self) -> str:
        """How far the feed is: what a page asks for from now on is no older."""
        return f"{self._life}.{self._version}"

    def open(
        self, environ: Mapping[str, Any], topic: str, targets_seen: Collection[str], until: float, visitor: str = "", since: str = ""
    ) -> bool:
        """Make the answer to this request a stream of a topic, if its view answers 200; whether there is a stream, else the page polls.

        `topic`: OVERVIEW or a target's name; `targets_seen`: the targets of which this viewer gets anything; `until`: when the
        sign-in ends, in seconds since the epoch; `visitor`: whose streams are counted together; `since`: the `position` at which the page
        was asked for.
        """
        streams: EventStreams | None = getattr(environ.get("gunicorn.socket"), "streams", None)
        if streams is None or (topic != OVERVIEW and not (self._is_known(topic) and topic in targets_seen)):
            return False
        here = list[_Viewer]()
        stream = streams.open(environ, visitor, until, partial(self._closed, topic, here))
        if stream is None:
            return False
        viewer = _Viewer(frozenset(filter(self._is_known, targets_seen)), stream)
        here.append(viewer)
        with self._lock:
            self._streams = streams
            of_topic = self._topics.setdefault(topic, _Topic(topic, away=self._away))
            of_topic.viewers.add(viewer)
            if topic == OVERVIEW and not of_topic.rows.keys() >= viewer.seen:
                of_topic.due = 0.0
            streams.publish(((stream, self._opening(of_topic, viewer, environ.get("HTTP_LAST_EVENT_ID") or since)),))
            self._left.clear()
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="live feed", daemon=True)
                thread.start()  # first: where there is no room for a thread, the next viewer tries again
                self._thread = thread
        return True

    def _is_known(self, name: str) -> bool:
        return is_target_name(name) and template_of(name) in self._names

    def _closed(self, topic: str, here: list[_Viewer]) -> None:
        with self._lock:
            of_topic = self._topics.get(topic, _Topic(topic))
            of_topic.viewers.difference_update(here)
            if not of_topic.viewers:
                self._topics.pop(topic, None)
            if not self._topics:
                self._left.set()

    def _opening(self, topic: _Topic, viewer: _Viewer, last: str) -> bytes:
        """Return the newest fragments that are newer than what a browser shows, by the last number that it has seen or was loaded with."""
        life, _, number = last.partition(".")
        known = int(number) if life == self._life and number.isascii() and number.isdigit() and len(number) < 16 else 0
        newer = [each for each in topic.fragments.values() if each.version > known]
        return (_event("away", {}) if topic.away else b"") + self._batch(newer, viewer.seen)

    def _batch(self, fragments: Iterable[_Fragment], seen: Collection[str]) -> bytes:
        """Join what a viewer may see. The number comes last: a viewer that has it has all before it."""
        return b"".join((*(each.event for each in fragments if each.target in seen), f"id: {self.position}\n\n".encode()))

    # --- the thread
    def _work(self) -> None:
        while self._goes_on():
            begun = time.monotonic()
            try:
                busy = self._turn(begun)
                pause = PACE - (time.monotonic() - begun) if busy else 0.0
            except WorkerUnavailable:
                self._all_away()
                pause = AWAY
            except Exception:  # noqa: BLE001 - whatever it is, pages rely on us
                _LOG.exception("the live feed failed")
                pause = AWAY
            if pause > 0:
                self._left.wait(pause)

    def _goes_on(self) -> bool:
        """Whether there are viewers; else all is forgotten, and the next viewer starts a thread."""
        with self._lock:
            if not self._topics:
                self._thread, self._away, self._live, self._boot, self._since = None, False, {}, "", 0
                return False
            return True

    def _turn(self, now: float) -> bool:
        """Ask what has changed, then look at what is due; return whether there was anything. Raises WorkerUnavailable."""
        with self._lock:
            due = min(topic.due for topic in self._topics.values()) if self._topics else 0.0
        changed = self._changes(min(max(due - now, 0.0), WAIT))
        now = time.monotonic()
        topics = self._back()
        busy = sorted((topic for topic in topics if topic.busy(now)), key=lambda topic: (topic.troubled, topic.due))
        for topic in busy[:AT_ONCE]:
            later = now + EVERY * max(len(topics) / AT_ONCE, 1.0)
            with self._lock:
                due = topic.due <= now
                topic.stale |= due
                topic.due = later if due else topic.due
            self._look(topic)
            with self._lock:
                if topic.away or (due and topic.troubled and topic.due == later):  # else a page was opened meanwhile, and waits for it
                    topic.due = later if topic.away else now + (later - now) * SELDOM
            if topic.away:
                break  # is it the worker, or this question alone? The next turn finds out
        return changed or bool(busy)

    def _look(self, topic: _Topic) -> None:
        """Look at a topic; what fails there is its trouble alone, and tried again."""
        away = False
        try:
            self._publish(topic, self._rows(topic) if topic.name == OVERVIEW else self._target(topic))
        except WorkerUnavailable:
            away = True
        except StateInvalid as error:  # an instance that has ended, say
            _LOG.warning("a page isn't kept live", extra={"fields": {"topic": topic.name, "seen": str(error)}})
        except Exception:  # noqa: BLE001 - a mistake of a template, say
            _LOG.exception("a page isn't kept live", extra={"fields": {"topic": topic.name}})
        with self._lock:
            self._tell(topic, away=away)

    def _changes(self, wait: float) -> bool:
        answer = self._answer("changes", boot=self._boot, since=self._since, wait=wait)
        if "boot" not in answer:  # a worker that keeps no such picture: the records are looked at
            self._left.wait(wait)
            return False
        restarted = answer["boot"] != self._boot
        self._boot, self._since = answer["boot"], answer["version"]
        with self._lock:
            if restarted:
                self._live.clear()
                for topic in self._topics.values():
                    topic.due = 0.0
            for name, picture in answer["targets"].items():
                self._note(name, self._live.get(name), picture)
            self._drop_ended()
        return bool(answer["targets"])

    def _note(self, name: str, before: Json | None, picture: Json | None) -> None:
        self._live.pop(name, None)  # instances come and go
        if picture is not None:
            self._live[name] = picture
        recorded = picture is None or _without(picture, _OF_RUN) != _without(before or {}, _OF_RUN)
        if recorded and (overview := self._topics.get(OVERVIEW)):
            overview.changed.add(template_of(name))
        if topic := self._topics.get(name):
            topic.changed.add(name)
            topic.stale |= recorded

    def _drop_ended(self) -> None:
        """Drop the pictures of ended runs as the worker does, but for open pages."""
        ended = [name for name, picture in self._live.items() if picture and picture["ended"] and name not in self._topics]
        for name in ended[:-ENDED]:
            del self._live[name]

    def _rows(self, topic: _Topic) -> Mapping[str, str]:
        """Return the rendered rows that differ from the last ones."""
        with self._lock:
            wanted = frozenset[str]().union(*(viewer.seen for viewer in topic.viewers))
            asked = wanted if topic.stale else wanted & topic.changed
            topic.changed, topic.stale = set(), False
        if not asked:
            return {}
        answer = self._answer("targets", names=sorted(asked), each=len(asked) <= FEW)
        rows = {str(row["target"]): row for row in answer["targets"]}
        known = topic.rows
        new = [row for name, row in rows.items() if _without(row, _AGE) != _without(known.get(name, {}), _AGE)]
        html = self._render(OVERVIEW, new) if new else {}
        topic.rows = {**known, **rows}
        return {each: text for each, text in html.items() if each.startswith(ROW) and each.removeprefix(ROW) in rows}

    def _target(self, topic: _Topic) -> Mapping[str, str]:
        topic.changed.clear()
        if topic.stale or topic.record is None:
            topic.stale = False
            topic.record = self._answer("target", name=topic.name)["target"]
        return self._render(topic.name, {"target": topic.record, "live": self._live.get(topic.name)})

    def _answer(self, question: str, **about: Any) -> Json:
        """Ask the worker. Raises WorkerUnavailable: it doesn't answer; StateInvalid: it can't find out."""
        answer = self._ask(question, **about)
        if trouble := answer.get("trouble"):
            raise StateInvalid.of("worker", f"{trouble['code']}: {trouble['message']}")
        return answer

    # --- publishing
    def _publish(self, topic: _Topic, html: Mapping[str, str]) -> None:
        """Send what differs from what was sent last to the viewers that may see it."""
        known, version = topic.fragments, self._version + 1
        new = {name: _fragment(topic.name, name, text, version) for name, text in html.items() if _differs(known.get(name), text)}
        if not new:
            return
        with self._lock:
            self._version = version
            topic.fragments = {**known, **new}
            made = dict[frozenset[str], bytes]()
            self._send((viewer.stream, self._once(made, new.values(), viewer.seen)) for viewer in topic.viewers)

    def _once(self, made: dict[frozenset[str], bytes], fragments: Collection[_Fragment], seen: Collection[str]) -> bytes:
        """Build the bytes of viewers that see the same once."""
        shown = frozenset(each.target for each in fragments if each.target in seen)
        if shown not in made:
            made[shown] = self._batch(fragments, shown)
        return made[shown]

    def _send(self, batch: Iterable[tuple[EventStream, bytes]]) -> None:
        if self._streams:
            self._streams.publish(batch)

    def _all_away(self) -> None:
        """Tell all viewers that the worker is away."""
        with self._lock:
            self._away = True
            for topic in self._topics.values():
                self._tell(topic, away=True)

    def _back(self) -> list[_Topic]:
        """Return all topics, of a worker that answers; where it was away all is looked at, for what was asked in vain is forgotten."""
        with self._lock:
            topics = list(self._topics.values())
            for topic in topics if self._away else ():
                topic.due = 0.0
            self._away = False
            return topics

    def _tell(self, topic: _Topic, *, away: bool) -> None:
        """Say once that a topic's questions have no answer, or have one again. The lock is held."""
        if topic.away != away:
            topic.away, said = away, _event("away" if away else "back", {})
            self._send((viewer.stream, said) for viewer in topic.viewers)


def _without(found: Json, names: Collection[str]) -> Json:
    return {name: value for name, value in found.items() if name not in names}


def _differs(known: _Fragment | None, html: str) -> bool:
    return known is None or _GROWN.sub(r"\1", known.html) != _GROWN.sub(r"\1", html)


def _fragment(topic: str, name: str, html: str, version: int) -> _Fragment:
    return _Fragment(html, _event("replace", {"id": name, "html": html}), version, name.removeprefix(ROW) if topic == OVERVIEW else topic)


def _event(name: str, data: Json) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
