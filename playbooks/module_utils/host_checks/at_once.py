"""Many slow questions asked at once, with one deadline for all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

_MOST_THREADS = 32
Question = TypeVar("Question")
Answer = TypeVar("Answer")


def ask(
    questions: Iterable[Question], answer: Callable[[Question], Answer], seconds: float
) -> dict[Question, Answer]:
    """The answers that came in time, by question; what is late is left to its daemon thread."""
    pending = list(questions)
    answers: dict[Question, Answer] = {}

    def work() -> None:
        while pending:
            question = pending.pop()
            answers[question] = answer(question)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(_MOST_THREADS, len(pending)))]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return dict(answers)
