"""Sites that are read by Ansible itself, in a tenth of the time."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.site.listing_process import (
    LISTING,
    Context,
    ListingProcess,
    first_line,
    listing_environment,
    rest,
)

Answer = Callable[[list[str], Context, ListingProcess | None], tuple[str, str]]


@pytest.fixture(scope="session")
def ansible_reader() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported Ansible and forks for every inventory."""
    with subprocess.Popen(
        [sys.executable, "-I", str(Path(__file__).with_name("forking.py")), str(LISTING)],
        env=listing_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin
        process.stdin.close()


@pytest.fixture(scope="session")
def quick_answer(ansible_reader: subprocess.Popen[str]) -> Answer:
    """Spares the start of a process per inventory; the program that reads it is the same."""

    def answer(arguments: list[str], context: Context, _: ListingProcess | None) -> tuple[str, str]:
        assert ansible_reader.stdin
        assert ansible_reader.stdout
        ansible_reader.stdin.write(json.dumps(first_line(arguments) + rest(context)) + "\n")
        ansible_reader.stdin.flush()
        said = json.loads(ansible_reader.stdout.readline())
        return said["stdout"], said["stderr"]

    return answer


@pytest.fixture
def quick_reading(quick_answer: Answer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has every inventory of a test read by the waiting process."""
    monkeypatch.setattr("deploy.site.reading._answer", quick_answer)
