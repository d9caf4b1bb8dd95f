"""What people see of the portal, in Chromium."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.cluster.browser import chromium, visit
from tests.cluster.lab_cluster import Cluster
from tests.cluster.portal_lab import HOST, address, password_of

URL = f"https://{HOST}"
PHONE = 390
"""The width of a small phone."""
WAITS = 120_000
"""For as long a job may take to start on a busy machine, in milliseconds."""
REFRESH = "DEPLOY_PORTAL_PICTURES"
"""The environment variable with which a run replaces the pictures of the documentation."""
_DOCS = Path(__file__).parents[2] / "docs/pictures/portal"
_KEY = (
    "openssl x509 -in /etc/slurm-portal/tls.crt -noout -pubkey | openssl pkey -pubin -outform der | "
    "openssl dgst -sha256 -binary | base64"
)


@contextmanager
def browser_of(cluster: Cluster) -> Iterator[Browser]:
    """One that finds the portal by its name, and takes its certificate for good and no other one."""
    key = cluster.on(HOST, "sh", "-c", _KEY).strip()
    with chromium(
        f"--host-resolver-rules=MAP {HOST} {address(cluster, HOST)}",
        f"--ignore-certificate-errors-spki-list={key}",
    ) as browser:
        yield browser


def log_in(page: Page, name: str, password: str = "") -> None:
    """Through the page, with its labels."""
    visit(page, f"{URL}/hub/login")
    page.get_by_label("Username:").fill(name)
    page.get_by_label("Password:", exact=True).fill(password or password_of(name))
    page.get_by_role("button", name="Sign in").click()


@contextmanager
def logged_in(browser: Browser, name: str, *, width: int = 1000) -> Iterator[Page]:
    """A page of somebody who has logged in, with cookies of their own."""
    context = browser.new_context(viewport={"width": width, "height": 720})
    try:
        page = context.new_page()
        # JupyterLab asks whether to leave a notebook that it has not saved yet.
        page.on("dialog", lambda dialog: dialog.accept())
        log_in(page, name)
        # Loaded, too: what is opened before that is interrupted.
        page.wait_for_url(lambda url: not url.startswith(f"{URL}/hub/login"))
        yield page
    finally:
        context.close()


def start(page: Page, name: str, form: Mapping[str, str]) -> None:
    """Asks for a server with the form."""
    visit(page, f"{URL}/hub/spawn/{name}")
    for field, value in form.items():
        fill(page, field, value)
    page.get_by_role("button", name="Start", exact=True).click()


def fill(page: Page, label: str, value: str) -> None:
    """A field of the form, by its label."""
    field = page.get_by_label(label, exact=True)
    if field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(value)
    else:
        field.fill(value)


def stop(page: Page) -> None:
    """With the button on the page of the own server."""
    visit(page, f"{URL}/hub/home")
    page.get_by_role("button", name="Stop My Server").click()
    expect(page.get_by_role("button", name="Start My Server")).to_be_visible(timeout=WAITS)


def picture(page: Page, name: str, place: Path) -> None:
    """Keeps what the page shows, in the documentation where REFRESH is set."""
    path = (_DOCS if os.environ.get(REFRESH) else place) / f"{name}.png"
    # JupyterLab asks at first whether to fetch news.
    page.screenshot(path=path, animations="disabled", full_page=True, style=".Toastify { display: none; }")
    # A page has few colours.
    with Image.open(path) as taken:
        small = taken.convert("RGB").quantize(64)
    small.save(path, optimize=True)


def unusable(page: Page) -> list[str]:
    """What has no name that a screen reader could say, or is not reached by the keyboard."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("input, select, textarea, button, a, [role=button]")]
        .filter((one) => one.type !== "hidden" && one.checkVisibility())
        .filter((one) => {
          const labelled = (one.labels && one.labels.length) || one.ariaLabel || one.title;
          const says = one.textContent.trim() || (one.type === "submit" && one.value);
          const named = labelled || says || one.querySelector("img[alt]:not([alt=''])");
          return !named || one.tabIndex < 0 || (one.tagName === "A" && !one.href);
        })
        .map((one) => one.outerHTML.slice(0, 200))"""
    )
    return found


def too_wide(page: Page) -> list[str]:
    """What reaches beyond the window, where the page as a whole does."""
    found: list[str] = page.evaluate(
        """() => document.documentElement.scrollWidth <= window.innerWidth ? [] :
        [...document.querySelectorAll("body *")]
        .filter((one) => one.getBoundingClientRect().right > window.innerWidth + 1)
        .map((one) => one.outerHTML.slice(0, 200))"""
    )
    return found
