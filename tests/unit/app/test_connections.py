"""Parts that are shared between threads: what one asks for it gets, though another lets go of it at that moment."""

from __future__ import annotations

from typing import Any

from handler.app.connections import Connections, Options
from handler.config.secrets import Secrets
from handler.config.settings import Settings


class Forgetful(dict[Any, Any]):
    """What was made, each part of which is let go of as soon as it is kept."""

    def setdefault(self, key: Any, default: Any = None) -> Any:
        super().setdefault(key, default)
        return self.pop(key)


class Forgotten(dict[Any, Any]):
    """What was made, each part of which is let go of between two questions for it."""

    def __contains__(self, key: object) -> bool:
        self.pop(key, None)
        return True


def connections() -> Connections:
    return Connections(Settings(()), Secrets(), {}, Options())


def test_a_part_that_is_let_go_of_while_it_is_made_is_returned() -> None:
    ways = connections()
    ways._made = Forgetful()
    assert ways._once(("digest", "shop.ns.a"), lambda: "made") == "made"


def test_a_part_that_is_let_go_of_while_it_is_asked_for_is_made_again() -> None:
    ways = connections()
    ways._made = Forgotten({("digest", "shop.ns.a"): "before"})
    assert ways._once(("digest", "shop.ns.a"), lambda: "made") in ("before", "made")


def test_a_part_is_made_once_though_it_is_none() -> None:
    ways, made = connections(), list[None]()
    for _ in range(2):
        assert ways._once(("uid",), lambda: made.append(None)) is None
    assert made == [None]
