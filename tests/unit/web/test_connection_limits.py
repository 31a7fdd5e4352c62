"""Who gives way at a full door: the oldest whose request isn't whole, never a whole one; and for whom a proxy speaks."""

from __future__ import annotations

from handler.web.connection_limits import Bounds, OpenConnections, Peers
from tests.unit.rows import each_row


def crowd(connections: int = 4, of_peer: int = 2, held: int = 100) -> OpenConnections[str]:
    return OpenConnections[str](Bounds(connections, of_peer, held))


def came(door: OpenConnections[str], *each: tuple[str, str]) -> list[str]:
    """Let them come one after the other; return who gave way, in order."""
    gone = []
    for name, peer in each:
        door.add(name, peer)
        while (loser := door.surplus(name, 0)) is not None:
            gone.append(loser)
            door.remove(loser)
    return gone


def test_the_oldest_of_all_gives_way_to_the_newest() -> None:
    door = crowd()
    assert came(door, ("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("e", "5"), ("f", "6")) == ["a", "b"]
    assert list(door) == ["c", "d", "e", "f"]


def test_the_oldest_of_a_peer_gives_way_to_its_newest_and_others_stay() -> None:
    door = crowd()
    assert came(door, ("other", "2"), ("a", "1"), ("b", "1"), ("c", "1"), ("d", "1")) == ["a", "b"]
    assert list(door) == ["other", "c", "d"]


def test_connections_without_a_peer_are_bounded_in_all_alone() -> None:
    door = crowd()
    assert came(door, ("a", ""), ("b", ""), ("c", ""), ("d", "")) == []
    assert came(door, ("e", "")) == ["a"]


def test_a_whole_request_is_never_dropped_and_counts_for_no_peer() -> None:
    door = crowd()
    came(door, ("a", "1"), ("b", "1"))
    door.whole("a")
    door.whole("b")
    assert came(door, ("c", "1"), ("d", "1"), ("e", "1")) == ["c"]
    assert sorted(door) == ["a", "b", "d", "e"]


def test_where_all_requests_are_whole_the_newest_connection_is_closed() -> None:
    door = crowd()
    for name in "abcd":
        came(door, (name, "1"))
        door.whole(name)
    assert came(door, ("e", "2")) == ["e"]
    assert len(door) == 4


def test_bytes_are_bounded_in_all_and_the_oldest_gives_way() -> None:
    door = crowd()
    came(door, ("a", "1"), ("b", "2"))
    assert door.surplus("b", 100) is None
    assert door.surplus("b", 101) == "a"
    door.whole("a")
    assert door.surplus("b", 101) == "b", "what is whole keeps its bytes"
    door.whole("b")
    assert door.surplus("b", 101) is None


def test_a_connection_with_a_new_peer_address_stands_behind_the_others() -> None:
    door = crowd()
    came(door, ("a", ""), ("b", "1"))
    door.add("a", "1")
    assert came(door, ("c", "1")) == ["b"]
    for name in ("a", "c"):
        door.remove(name)
    assert (len(door), door._peers) == (0, {})


@each_row(
    ("client", "peer"),
    [
        (("192.0.2.1", 5), "192.0.2.1"),
        (("::ffff:192.0.2.1", 5, 0, 0), "192.0.2.1"),
        (("2001:db8:1:2:3:4:5:6", 5, 0, 0), "2001:db8:1:2::/64"),
        (("10.1.2.3", 5), ""),
        (("fd00::1", 5, 0, 0), ""),
        (("::ffff:10.1.2.3", 5, 0, 0), ""),
        ("", ""),
    ],
)
def test_a_peer_is_an_address_or_a_network_of_ipv6_and_a_proxy_is_nobody(client: object, peer: str) -> None:
    assert Peers(["10.0.0.7/8", "fd00::/8"]).peer(client) == peer


@each_row(
    ("forwarded", "client"),
    [
        (["192.0.2.1"], ("192.0.2.1", "192.0.2.1")),
        (["203.0.113.9, 192.0.2.1, 10.9.9.9"], ("192.0.2.1", "192.0.2.1")),
        (["203.0.113.9", "192.0.2.1", "10.9.9.9"], ("192.0.2.1", "192.0.2.1")),
        (["192.0.2.1:4711"], ("192.0.2.1", "192.0.2.1")),
        (["[2001:db8::1]:4711"], ("2001:db8::1", "2001:db8::/64")),
        (["2001:db8::1"], ("2001:db8::1", "2001:db8::/64")),
        (["203.0.113.9, unknown"], None),
        (["10.1.1.1, 10.2.2.2"], None),
        ([""], None),
        ([], None),
    ],
)
def test_a_trusted_proxy_names_the_last_hop_that_is_none(forwarded: list[str], client: tuple[str, str] | None) -> None:
    headers = [("HOST", "x"), *(("X-FORWARDED-FOR", value) for value in forwarded)]
    peers = Peers(["10.0.0.0/8"])
    assert peers.client(("10.0.0.1", 5), headers) == client
    assert peers.client(("192.0.2.7", 5), headers) is None, "no proxy of ours"
    assert Peers().client(("10.0.0.1", 5), headers) is None, "none is named"
