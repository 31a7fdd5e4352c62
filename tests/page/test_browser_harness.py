"""The harness itself: a page in order passes, and each fault of one that isn't is reported."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from infra.browser import axe
from infra.browser.chromium import WIDTHS, Chromium, Scheme
from infra.browser.faults import Faults
from infra.controlplane.processes import Process, alive, born
from tests.e2e.serve_process import ROOT, descendants, until
from tests.page.axe_clean import axe_clean
from tests.page.conftest import OpenPage
from tests.page.small_site import Site, document

PAGES = {
    "/icon": "",
    "/favicon.ico": "",
    "/fine": document('<label>Name <input id="name"></label><p id="said"></p>', '<script src="/fine.js" defer></script>'),
    "/fine.js": "document.querySelector('#said').textContent = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light'",
    "/inline": document("<p id='said'>before</p><script>document.querySelector('#said').textContent = 'run'</script>"),
    "/handler": document("<button onclick='document.title = 1'>Press</button>"),
    "/error": document("", '<script src="/error.js" defer></script>'),
    "/error.js": "console.error('it went wrong')",
    "/throws": document("", '<script src="/throws.js" defer></script>'),
    "/throws.js": "undefined.field",
    "/late": document("<button>Press</button>", '<script src="/late.js" defer></script>'),
    "/late.js": "document.querySelector('button').onclick = () => setTimeout(() => console.error('late'))",
    "/unlabelled": document('<input id="name">'),
    "/faint": document("<p>faint</p>", '<link rel="stylesheet" href="/faint.css">'),
    "/faint.css": "@media (prefers-color-scheme: dark) { body { background: #000 } p { color: #222 } h1 { color: #fff } }",
    "/missing": document('<img src="/none.png" alt="a picture">'),
}


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with Site(PAGES) as served:
        yield served


@pytest.fixture(scope="module")
def other() -> Iterator[Site]:
    """Another one, which outlives all pages: a browser asks for icons when it likes."""
    with Site(PAGES) as served:
        yield served


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_in_order_leaves_no_fault_and_is_shown_as_the_context_says(
    scheme: Scheme, width: int, site: Site, open_page: OpenPage, faults: Faults
) -> None:
    page = open_page(site.url, scheme=scheme, width=width)
    page.goto("/fine")
    expect(page.get_by_text(scheme)).to_be_visible()
    assert page.evaluate("innerWidth") == width
    axe_clean(page)
    assert page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") is (scheme == "dark"), "the scheme is as before"
    assert faults.seen() == []


def test_an_inline_script_doesnt_run_and_is_reported(site: Site, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(site.url)
    page.goto("/inline")
    expect(page.locator("#said")).to_have_text("before")
    faults.expect("policy: script-src-elem blocked inline")
    faults.expect("console: ")


def test_an_inline_handler_doesnt_run_and_is_reported(site: Site, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(site.url)
    page.goto("/handler")
    page.get_by_role("button").click()
    assert page.title() == "A page"
    faults.expect("policy: script-src-attr blocked inline")
    faults.expect("console: ")


@pytest.mark.parametrize(
    ("path", "said"),
    [("/error", "console: it went wrong"), ("/throws", "exception: "), ("/missing", "status of 404"), ("/none", "status of 404")],
)
def test_what_goes_wrong_in_a_page_is_reported(path: str, said: str, site: Site, open_page: OpenPage, faults: Faults) -> None:
    open_page(site.url).goto(path)
    faults.expect(said)


def test_what_a_click_causes_afterwards_is_reported(site: Site, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(site.url)
    page.goto("/late")
    page.get_by_role("button").click()
    faults.expect("console: late")


def test_a_request_to_elsewhere_is_reported_and_doesnt_leave_the_machine(site: Site, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(site.url)
    page.goto("/fine")
    assert page.evaluate("fetch('http://192.0.2.1/').then(() => 'answered', () => 'refused')") == "refused"
    faults.expect("policy: connect-src blocked http://192.0.2.1")
    faults.expect("console: ")
    with pytest.raises(Exception, match="ERR_NAME_NOT_RESOLVED"):
        page.goto("http://192.0.2.1/")
    faults.expect("elsewhere: GET http://192.0.2.1/")


def test_another_server_of_this_machine_is_elsewhere_unless_it_is_named(
    site: Site, other: Site, open_page: OpenPage, faults: Faults
) -> None:
    open_page(site.url, also=(other.url,)).goto(f"{other.url}/fine.js")
    assert faults.seen() == []
    open_page(site.url).goto(f"{other.url}/fine.js")
    faults.expect(f"elsewhere: GET {other.url}/fine.js")


def test_an_unexpected_fault_fails_the_test_at_its_end(site: Site, chromium: Chromium) -> None:
    seen = Faults()
    context = chromium.context(site.url)
    seen.watch(context, site.url)
    context.new_page().goto("/error")
    with pytest.raises(AssertionError, match="the browser complains:\nconsole: it went wrong"):
        seen.close()
    with pytest.raises(AssertionError, match="no fault with 'other' was seen"):
        Faults().expect("other")


def test_axe_names_rule_and_element(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url)
    page.goto("/unlabelled")
    (found,) = axe.violations(page)
    assert found.startswith("label (critical) at #name: Form elements must have labels.")
    with pytest.raises(AssertionError, match="dark: label"):
        axe_clean(page)


def test_what_is_faint_in_one_scheme_alone_is_found(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.url)
    page.goto("/faint")
    with pytest.raises(AssertionError, match=r"^axe finds:\ndark: color-contrast \(serious\) at p: .*#222222"):
        axe_clean(page)


def test_a_context_begins_with_nothing_of_another(site: Site, open_page: OpenPage) -> None:
    first, second = open_page(site.url), open_page(site.url)
    first.goto("/fine")
    first.evaluate("document.cookie = 'signed=in'")
    second.goto("/fine")
    assert (first.evaluate("document.cookie"), second.evaluate("document.cookie")) == ("signed=in", "")


def test_a_page_without_scripts_is_watched_too(site: Site, open_page: OpenPage, faults: Faults) -> None:
    page = open_page(site.url, scripts=False)
    page.goto("/fine")
    expect(page.locator("#said")).to_be_empty()
    assert faults.seen() == []
    page.goto("/missing")
    faults.expect("status of 404")


STARTS = """
import sys
from infra.browser.chromium import Chromium
with Chromium() as browser:
    browser.context("http://127.0.0.1:1").new_page()
    print("up", flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_takes_its_browser_along() -> None:
    with subprocess.Popen([sys.executable, "-c", STARTS], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "up\n"
        browser = [Process("", pid, born(pid)) for pid in descendants(started.pid)]
        assert len(browser) > 2
        started.send_signal(signal.SIGKILL)
    until(lambda: not any(alive(each) for each in browser))
