"""Alice uses the portal in a browser; whatever goes wrong, she reads what is so and what helps."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.cluster.browser import visit
from tests.cluster.lab_cluster import DEPLOY, Cluster, run, wait_until
from tests.cluster.portal_lab import HOST, STRANGER, end_servers, jobs, password_of
from tests.cluster.portal_pages import (
    PHONE,
    URL,
    WAITS,
    browser_of,
    fill,
    log_in,
    logged_in,
    picture,
    start,
    stop,
    too_wide,
    unusable,
)

pytestmark = [pytest.mark.one_release, pytest.mark.more]

_GPU = {"GPUs": "1", "Type of GPU": "a100", "Minutes": "10"}
_SLOW = 90_000
_TRIES = 5
_WITHOUT = {"GPUs": "0", "Minutes": "10"}
_CELL = "import os, socket\nprint(os.environ['CUDA_VISIBLE_DEVICES'], socket.gethostname())"


@pytest.fixture(scope="module")
def browser(portal: Cluster) -> Iterator[Browser]:
    with browser_of(portal) as found:
        yield found


@pytest.fixture(autouse=True)
def _nobody_has_a_server(portal: Cluster) -> None:
    end_servers(portal)


@contextmanager
def held(portal: Cluster) -> Iterator[str]:
    """Bob has all GPUs."""
    script = "sbatch --parsable --array=0-1 --gpus=1 --time=30 --output=/dev/null --wrap 'sleep 900'"
    number = portal.as_user(script, user="bob").strip()
    try:
        wait_until("bob has both GPUs", lambda: jobs(portal, "bob", "%T").split() == ["RUNNING"] * 2, 120)
        yield number
    finally:
        portal.on("ctl1", "scancel", "--user=bob")
        wait_until("bob's jobs are gone", lambda: not jobs(portal, "bob"), 60)


def reads_at_home(page: Page, words: str) -> bool:
    """Whether the page of the own server says it."""
    visit(page, f"{URL}/hub/home")
    return words in page.get_by_role("status").inner_text()


def new_cell_prints(page: Page, code: str, expected: "str | re.Pattern[str]") -> str:
    """Runs the last cell of the notebook that is open, and gives what it printed."""
    expect(page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible(timeout=_SLOW)
    cells = page.locator(".jp-Notebook:visible .jp-CodeCell")
    cell = cells.nth(cells.count() - 1)
    # The notebook may still be loading, and take a cell's text along.
    for line in range(_TRIES):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+A")
        page.keyboard.insert_text(code)
        page.wait_for_timeout(500 * line)
        if cell.locator(".cm-line").all_inner_texts() == code.split("\n"):
            break
    page.keyboard.press("Shift+Enter")
    output = cell.locator(".jp-OutputArea-output").last
    expect(output).to_contain_text(expected, timeout=_SLOW)
    return output.inner_text().strip()


def open_from_launcher(page: Page, category: str, title: str) -> None:
    """A card of JupyterLab's launcher."""
    card = page.locator(f'.jp-LauncherCard[data-category="{category}"]:visible', has_text=title).first
    if not card.is_visible():
        page.get_by_role("button", name="New Launcher (").first.click()
    card.click()


def at_lab(page: Page, name: str) -> None:
    """JupyterLab comes by itself; nothing is open in it yet."""
    page.wait_for_url(f"**/user/{name}/lab*", timeout=WAITS)
    visit(page, f"{URL}/user/{name}/lab?reset")
    expect(page.locator(".jp-Launcher")).to_be_visible(timeout=WAITS)


def test_alice_waits_computes_and_stops_by_the_button(
    portal: Cluster, browser: Browser, tmp_path: Path
) -> None:
    with logged_in(browser, "alice") as page:
        visit(page, f"{URL}/hub/spawn/alice")
        for field, value in _GPU.items():
            fill(page, field, value)
        picture(page, "form", tmp_path)
        with held(portal):
            page.get_by_role("button", name="Start", exact=True).click()
            expect(page.locator("#progress-message")).to_contain_text(
                "waits: what you asked for is in use", timeout=WAITS
            )
            picture(page, "waiting", tmp_path)
            assert jobs(portal, "alice", "%T") == "PENDING"
        job, host = in_lab(portal, page, tmp_path)
        stop(page)
        expect(page.get_by_role("status")).to_contain_text(f"Job {job} has ended: it was cancelled")
    assert jobs(portal, "alice") == ""
    row = ("sacct", "-nXP", f"--jobs={job}", "--format=User,Account,JobName,State,AllocTRES")
    wait_until(
        "sacct has the job", lambda: portal.on("ctl1", *row).startswith("alice|research|jupyter|CANC"), 60
    )
    assert "gres/gpu=1" in portal.on("ctl1", *row)
    left = f"pgrep --uid=alice; find /tmp /dev/shm /run -user alice 2>/dev/null; find {_HOMES} -name '*.json'"
    wait_until("nothing is left", lambda: portal.on(host, "sh", "-c", left, expect=None) == "", 60)


# Where Jupyter notes what runs.
_HOMES = "/home/alice/.local/share/jupyter/runtime"


def in_lab(portal: Cluster, page: Page, place: Path) -> tuple[str, str]:
    """JupyterLab comes by itself; a cell, a terminal and TensorBoard run on her node. Her job and node."""
    at_lab(page, "alice")
    job, host = jobs(portal, "alice", "%i %N").split()
    open_from_launcher(page, "Notebook", "Python 3")
    assert new_cell_prints(page, _CELL, host) == f"0 {host}"
    picture(page, "lab", place)
    open_from_launcher(page, "Other", "Terminal")
    terminal = page.locator(".jp-Terminal")
    expect(terminal.locator(".xterm-screen")).to_be_visible()
    terminal.click()
    page.keyboard.type("echo $SLURM_JOB_ID $(id --user --name) >here.txt\n")
    note = "cat here.txt 2>/dev/null"
    wait_until("the terminal did it", lambda: portal.as_user(note, expect=None).strip() == f"{job} alice", 60)
    with page.context.expect_page() as opened:
        open_from_launcher(page, "Notebook", "TensorBoard")
    expect(opened.value).to_have_title("TensorBoard", timeout=WAITS)
    expect(opened.value.get_by_text("No dashboards are active")).to_be_visible(timeout=WAITS)
    picture(opened.value, "tensorboard", place)
    opened.value.close()
    with page.context.new_page() as second:
        visit(second, f"{URL}/hub/jobs")
        expect(second.get_by_role("region", name=f"Job {job}")).to_contain_text(
            f"runs on {host}; time left: "
        )
        picture(second, "jobs", place)
    return job, host


def test_a_wrong_password_is_said_to_be_wrong(browser: Browser, tmp_path: Path) -> None:
    with browser.new_context() as context, context.new_page() as page:
        log_in(page, "alice", "another word")
        expect(page.locator(".login_error")).to_contain_text("Invalid username or password")
        expect(page.get_by_label("Username:")).to_have_value("alice")
        picture(page, "wrong-password", tmp_path)


def test_somebody_without_an_account_in_slurm_reads_whom_to_ask(browser: Browser, tmp_path: Path) -> None:
    with logged_in(browser, STRANGER) as page:
        visit(page, f"{URL}/hub/spawn/{STRANGER}")
        expect(page.get_by_role("alert")).to_contain_text("your account in Slurm is missing")
        expect(page.get_by_role("alert")).to_contain_text("Ask the cluster's admins")
        # There is nothing to start.
        expect(page.get_by_role("button", name="Start", exact=True)).to_be_hidden()
        picture(page, "no-account", tmp_path)


def test_a_partition_that_is_not_hers_is_not_offered_and_named_when_asked_for(
    portal: Cluster, browser: Browser, tmp_path: Path
) -> None:
    with logged_in(browser, "alice") as page:
        visit(page, f"{URL}/hub/spawn/alice")
        partitions = page.get_by_label("Partition", exact=True)
        expect(partitions.get_by_role("option")).to_have_text(["batch"])
        partitions.evaluate("field => field.add(new Option('theirs', 'theirs', true, true))")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator(".spawn-error-msg")).to_have_text(
            "Error: You may not use the partition 'theirs'."
        )
        # The form is there again, for another choice.
        expect(partitions).to_be_visible()
        picture(page, "partition", tmp_path)
    assert jobs(portal, "alice") == ""


def test_an_image_is_named_where_it_is_wanted_and_a_wrong_one_is_refused(
    portal: Cluster, browser: Browser
) -> None:
    with logged_in(browser, "bob", width=PHONE) as page:
        visit(page, f"{URL}/hub/spawn/bob")
        image = page.get_by_label("Image, with JupyterLab and JupyterHub in it")
        expect(image).to_be_hidden()
        fill(page, "Environment", "own:image")
        expect(image).to_be_visible()
        assert too_wide(page) == []
        image.fill("../own.sqsh")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.locator(".spawn-error-msg")).to_contain_text("the whole path of a file")
    assert jobs(portal, "bob") == ""


def test_a_template_is_read_and_submitted(portal: Cluster, browser: Browser) -> None:
    with logged_in(browser, "bob", width=PHONE) as page:
        visit(page, f"{URL}/hub/jobs")
        page.get_by_text("A program with GPUs, in partition batch").click()
        script = page.get_by_role("region", name="A program with GPUs, in partition batch")
        expect(script).to_contain_text("#SBATCH --account=research")
        assert too_wide(page) == []
        assert unusable(page) == []
        page.get_by_role("button", name="Submit gpu in batch").click()
        expect(page.get_by_role("status")).to_contain_text("is submitted")
    wait_until("his job has run", lambda: not jobs(portal, "bob"), 120)


def test_a_wait_is_cancelled_by_the_button(portal: Cluster, browser: Browser) -> None:
    with logged_in(browser, "alice") as page, held(portal):
        start(page, "alice", _GPU)
        expect(page.locator("#progress-message")).to_contain_text("waits: ", timeout=WAITS)
        page.get_by_role("button", name="Stop Server").click()
        wait_until("her job is gone", lambda: not jobs(portal, "alice"), 60)
        expect(page.get_by_role("button", name=re.compile("Launch|Relaunch"))).to_be_visible(timeout=WAITS)


def test_a_hub_that_is_restarted_keeps_her_session(portal: Cluster, browser: Browser, tmp_path: Path) -> None:
    with logged_in(browser, "alice") as page:
        start(page, "alice", _WITHOUT)
        at_lab(page, "alice")
        open_from_launcher(page, "Notebook", "Python 3")
        new_cell_prints(page, "kept = 'it is still here'; print('set')", "set")
        portal.on(HOST, "systemctl", "stop", "slurm-portal")
        try:
            # What she computes goes on; pages of the hub say that they come back.
            new_cell_prints(page, "print(kept)", "it is still here")
            with page.context.new_page() as second:
                visit(second, f"{URL}/hub/jobs")
                expect(second.get_by_role("heading")).to_have_text("No answer yet")
                expect(second.locator("main")).to_contain_text("ends no running server")
                assert too_wide(second) == []
                picture(second, "restart", tmp_path)
                portal.on(HOST, "systemctl", "start", "slurm-portal")
                # By itself.
                expect(second.get_by_role("heading", name="My jobs")).to_be_visible(timeout=WAITS)
        finally:
            portal.on(HOST, "systemctl", "start", "slurm-portal")
        new_cell_prints(page, "print(kept, 'too')", "it is still here too")
        stop(page)
    assert jobs(portal, "alice") == ""


def test_a_node_that_dies_is_named_as_the_reason(portal: Cluster, browser: Browser, tmp_path: Path) -> None:
    lab = (*DEPLOY, "lab")
    with logged_in(browser, "alice") as page:
        start(page, "alice", _WITHOUT)
        at_lab(page, "alice")
        job, host = jobs(portal, "alice", "%i %N").split()
        run(*lab, "stop", "--name", portal.name, host)
        try:
            assert portal.is_off(host)
            # While Slurm takes the node for running.
            visit(page, f"{URL}/user/alice/lab")
            expect(page.get_by_role("heading")).to_have_text("No answer yet")
            expect(page.get_by_role("status")).to_contain_text(f"Its server on {host} does not answer")
            wait_until("Slurm gives the job up", lambda: not jobs(portal, "alice"), 120)
            wait_until(
                "she reads why", lambda: reads_at_home(page, f"Job {job} has ended: its node failed."), 120
            )
            visit(page, f"{URL}/user/alice/lab")
            expect(page.get_by_role("status")).to_have_text(f"Job {job} has ended: its node failed.")
            expect(page.get_by_role("button", name=re.compile("Launch"))).to_be_visible()
            picture(page, "node", tmp_path)
            visit(page, f"{URL}/hub/jobs")
            number = page.get_by_role("rowheader", name=job, exact=True)
            expect(page.get_by_role("row").filter(has=number)).to_contain_text("NODE_FAIL")
        finally:
            run(*lab, "start", "--name", portal.name, host)
    wait_until("the node is back", lambda: portal.plain_states()[host] in {"idle", "mix", "alloc"}, 300)


@pytest.mark.parametrize(
    "where", ["/hub/login", "/hub/home", "/hub/jobs", "/hub/spawn/alice", "/hub/user/alice/"]
)
def test_pages_fit_a_phone_and_have_names_for_a_screen_reader(browser: Browser, where: str) -> None:
    with logged_in(browser, "alice", width=PHONE) as page:
        if where == "/hub/login":
            page.context.clear_cookies()
        visit(page, URL + where)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        assert too_wide(page) == []
        assert unusable(page) == []
        page.get_by_label("Toggle navigation").or_(page.get_by_label("Username:")).first.click()
        assert too_wide(page) == []
        assert unusable(page) == []


def test_the_waiting_page_fits_a_phone_and_says_changes_aloud(portal: Cluster, browser: Browser) -> None:
    with logged_in(browser, "alice", width=PHONE) as page, held(portal):
        start(page, "alice", _GPU)
        expect(page.get_by_role("status")).to_contain_text("waits: ", timeout=WAITS)
        assert too_wide(page) == []
        assert unusable(page) == []
        visit(page, f"{URL}/hub/jobs")
        cancel = page.get_by_role("button", name="Cancel job")
        expect(cancel).to_have_count(1)
        assert too_wide(page) == []
        assert unusable(page) == []
        cancel.click()
        expect(page.get_by_text("None waits or runs.")).to_be_visible(timeout=WAITS)
        # A table of ended jobs is wider than a phone: it moves, the page does not.
        assert too_wide(page) == []
    wait_until("her job is gone", lambda: not jobs(portal, "alice"), 60)


def test_a_server_is_started_and_stopped_with_the_keyboard_alone(portal: Cluster, browser: Browser) -> None:
    with browser.new_context() as context, context.new_page() as page:
        visit(page, f"{URL}/hub/login")
        page.keyboard.type("bob")
        press_tab_until(page, "password_input")
        page.keyboard.type(password_of("bob"))
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("/hub/(spawn|home)"))
        visit(page, f"{URL}/hub/spawn/bob")
        passed = press_tab_until(page, "Start")
        fields = (
            "partition",
            "account",
            "qos",
            "gpus",
            "gpu_type",
            "cpus",
            "memory_gb",
            "minutes",
            "environment",
        )
        assert [one for one in passed if one.startswith("portal-")] == [f"portal-{name}" for name in fields]
        page.keyboard.press("Enter")
        page.wait_for_url("**/user/bob/lab*", timeout=WAITS)
        visit(page, f"{URL}/hub/home")
        press_tab_until(page, "end-server")
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Start My Server")).to_be_visible(timeout=WAITS)
    wait_until("his job is gone", lambda: not jobs(portal, "bob"), 60)


def press_tab_until(page: Page, name: str) -> list[str]:
    """What had the focus on the way, by id or text, until an element of this name has it."""
    passed: list[str] = []
    while name not in passed:
        assert len(passed) < 60, passed
        page.keyboard.press("Tab")
        passed.append(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
    return passed
