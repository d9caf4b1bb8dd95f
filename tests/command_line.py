"""What programs of the tests that are typed by hand share."""

import sys


def positive(text: str) -> int:
    """A number above 0, as argparse takes it."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def say(line: str) -> None:
    """A line beside the figures."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
