"""URLs of charts: what is one, and which prefix covers which."""

from __future__ import annotations

import pytest

from handler.model.chart_url import ChartUrl, canonical


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HTTPS://Charts.Example.com:443/Stable/", "https://charts.example.com/Stable"),
        ("http://h:80", "http://h"),
        ("oci://h:443/a/b", "oci://h/a/b"),
        ("oci://127.0.0.1:5000/a", "oci://127.0.0.1:5000/a"),
        ("https://[::1]:8443/x", "https://[::1]:8443/x"),
        ("https://h/a%2Bb~(1).tgz?signed=1", "https://h/a%2Bb~(1).tgz"),
    ],
)
def test_a_url_is_written_anew(text: str, expected: str) -> None:
    assert str(ChartUrl.of(text)) == canonical(text) == expected
    assert canonical("no url") == "no url"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("https://user:secret@h/x", "holds credentials"),
        ("https://h@evil/x", "holds credentials"),
        ("https://h\\@evil/x", "no URL has"),
        ("https://h/a\\..\\b", "no URL has"),
        ("https://h/a b", "no URL has"),
        ("https://h/a\nb", "no URL has"),
        ("https://h/ä", "no URL has"),
        ("https://h/x#y", "no URL has"),
        ("https://h/" + "a" * 2000, "too long"),
        ("https://h/a/../b", "has a `.` or `..`"),
        ("https://h/./b", "has a `.` or `..`"),
        ("https://h/%2e%2E/b", "escaped"),
        ("https://h/a%2fb", "escaped"),
        ("https://h/a%5cb", "escaped"),
        ("https://h/a%252e", "escaped"),
        ("https://h/a%00", "escaped"),
        ("https://h/a%zz", "escaped"),
        ("https://h:0/x", "is no oci://"),
        ("https://h:70000/x", "port above"),
        ("https:///x", "is no oci://"),
        ("https:h/x", "is no oci://"),
        ("//h/x", "is no oci://"),
        ("file:///etc/passwd", "is no oci://"),
        ("ssh://h/x", "is no oci://"),
    ],
)
def test_what_two_programs_could_read_differently_is_no_url(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ChartUrl.of(text)


@pytest.mark.parametrize(
    ("prefix", "url", "expected"),
    [
        ("https://h/stable", "https://h/stable", True),
        ("https://h/stable/", "https://H:443/stable/web-1.tgz", True),
        ("https://h", "https://h/anything", True),
        ("https://h/a%2Bb", "https://h/a+b/c", True),
        ("https://h/stable", "https://h/stable-evil", False),
        ("https://h/stable", "https://h/Stable", False),
        ("https://h/stable", "https://h//stable", False),
        ("https://h/stable", "https://h", False),
        ("https://h", "https://h.evil/x", False),
        ("https://h", "https://evil/h", False),
        ("https://h", "https://h:8443/x", False),
        ("https://h", "http://h/x", False),
        ("http://h", "https://h/x", False),
        ("oci://h/a", "oci://h/a/web", True),
        ("oci://h/a", "https://h/a/web", False),
        ("https://h/a", "oci://h/a/web", False),
        ("http://h:5000/a", "oci://h:5000/a/web", True),
        ("http://h:5000/a", "oci://h/a/web", False),
        ("http://h/a", "oci://h/a/web", True),
        ("http://h/a", "oci://h:80/a/web", True),
    ],
)
def test_which_prefix_covers_which_url(prefix: str, url: str, expected: bool) -> None:
    assert ChartUrl.of(prefix).covers(ChartUrl.of(url)) is expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("web.tgz", "https://h/stable/web.tgz"),
        ("../web.tgz", "https://h/web.tgz"),
        ("../../../web.tgz", "https://h/web.tgz"),
        ("/web.tgz", "https://h/web.tgz"),
        ("//evil/web.tgz", "https://evil/web.tgz"),
        ("http://evil/web.tgz", "http://evil/web.tgz"),
    ],
)
def test_references_are_joined_before_they_are_judged(reference: str, expected: str) -> None:
    assert str(ChartUrl.of("https://h/stable/index.yaml").joined(reference)) == expected


@pytest.mark.parametrize("reference", ["%2e%2e/x", "..\\x", "javascript:x", "//user@h/x", "x y"])
def test_references_that_are_none(reference: str) -> None:
    with pytest.raises(ValueError, match=r"(holds|has|is) "):
        ChartUrl.of("https://h/stable/index.yaml").joined(reference)
