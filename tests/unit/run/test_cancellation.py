import os
import signal

from deploy.run.cancellation import signals_cancel


def test_the_first_signal_asks_and_the_second_insists() -> None:
    with signals_cancel() as cancellation:
        assert (cancellation.is_asked, cancellation.is_at_once) == (False, False)
        os.kill(os.getpid(), signal.SIGINT)
        assert (cancellation.is_asked, cancellation.is_at_once) == (True, False)
        os.kill(os.getpid(), signal.SIGTERM)
        assert cancellation.is_at_once


def test_handlers_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with signals_cancel():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_a_hangup_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_cancel() as cancellation:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not cancellation.is_asked
    finally:
        signal.signal(signal.SIGHUP, before)
