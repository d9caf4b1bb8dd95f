"""A browser without a window, for pages that an admin opens."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, expect, sync_playwright

# A machine that runs two labs at once is slow.
expect.set_options(timeout=30_000)


@contextmanager
def browser_page() -> Iterator[Page]:
    """An empty page of Chromium. A test without it would prove nothing, so it fails."""
    chromium = shutil.which("chromium")
    assert chromium, "chromium is missing: run `make browser`"
    with sync_playwright() as driver:
        # The lab's addresses are reached directly, whatever proxy this machine has.
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-proxy-server"])
        try:
            yield browser.new_page()
        finally:
            browser.close()
