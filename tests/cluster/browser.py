"""A browser without a window, for pages that admins and users open."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

# A machine that runs two labs at once is slow.
expect.set_options(timeout=30_000)


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
