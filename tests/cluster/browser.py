"""A browser without a window, for pages that admins and users open."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

# A machine that runs two labs at once is slow.
expect.set_options(timeout=30_000)
_WAITS = 120_000
_TRIES = 3


@contextmanager
def chromium(*arguments: str) -> Iterator[Browser]:
    """Chromium with options of its own. A test without it would prove nothing, so it fails."""
    program = shutil.which("chromium")
    assert program, "chromium is missing: run `make browser`"
    with sync_playwright() as driver:
        # The lab's addresses are reached directly, whatever proxy this machine has.
        browser = driver.chromium.launch(executable_path=program, args=["--no-proxy-server", *arguments])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def browser_page() -> Iterator[Page]:
    """An empty page of Chromium."""
    with chromium() as browser:
        yield browser.new_page()


def visit(page: Page, url: str) -> None:
    """Opens a page: again, where the network of another lab came or went meanwhile and Chromium gave up."""
    for left in reversed(range(_TRIES)):
        try:
            page.goto(url, timeout=_WAITS)
        except Error as problem:
            if not left or "net::ERR_NETWORK_CHANGED" not in problem.message:
                raise
        else:
            return
