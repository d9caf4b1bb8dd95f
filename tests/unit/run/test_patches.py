import base64
import re
from types import SimpleNamespace

import pytest

from deploy.run.patches import WITHOUT, Patch, apply, replace, tell

FRAME = re.compile(r"\x1b\[K([A-Za-z0-9+/=]+)\x1b\[\d+D\x1b\[K")


def test_what_fits_is_done_and_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    holder = SimpleNamespace(old=1)
    apply(Patch.EVERY_CPU, lambda: replace(holder, "old", 2))
    assert apply(Patch.EVERY_CPU, lambda: "done") == "done"
    assert holder.old == 2
    assert capsys.readouterr().out == ""


def test_what_does_not_fit_is_left_out_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    holder = SimpleNamespace(new=1)
    apply(Patch.EVERY_CPU, lambda: replace(holder, "old", 2))
    assert holder == SimpleNamespace(new=1)
    said = capsys.readouterr().out
    text = FRAME.sub("", said)
    assert text.startswith("mitogen on every CPU does not fit ansible-core 2.")
    assert "(AttributeError: 'types.SimpleNamespace' object has no attribute 'old')" in text
    assert b'"event": "warning"' in base64.b64decode(FRAME.findall(said)[0])


def test_an_interruption_is_no_misfit() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        apply(Patch.EVERY_CPU, interrupted)


@pytest.mark.parametrize("which", Patch)
def test_each_can_be_left_out_and_that_is_told(
    which: Patch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(WITHOUT, f"something-else,{which.id}")
    done = [other for other in Patch if apply(other, lambda: True)]
    assert done == [other for other in Patch if other is not which]
    assert FRAME.sub("", capsys.readouterr().out).startswith(f"{which} is left out, as {WITHOUT} says")


def test_an_event_is_between_two_frames(capsys: pytest.CaptureFixture[str]) -> None:
    tell({"event": "x"}, "said")
    frames = FRAME.split(capsys.readouterr().out)
    assert [base64.b64decode(frames[1]), frames[2], base64.b64decode(frames[3])] == [
        b'{"event": "x"}',
        "said",
        b"{}",
    ]
