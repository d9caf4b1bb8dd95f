"""Step: a run is kept beside the inventory."""

from collections.abc import Iterator
from contextlib import contextmanager

from deploy import __version__
from deploy.engine.run import Run
from deploy.engine.story import Story
from deploy.engine.work import Work
from deploy.run.journal import Journal


@contextmanager
def journalled(run: Run, work: Work, story: Story, started: float) -> Iterator[Journal]:
    """The journal of a run that really begins: what was refused never was one."""
    journal = Journal.create(
        run.site.directory,
        {
            "started": started,
            "verb": "cluster",
            "version": __version__,
            "inventory": str(run.site.inventory),
            "arguments": run.options.line,
            "hosts": list(run.hosts),
            "check": run.options.check,
        },
    )
    with journal.keeps_faults():
        (journal.path / work.generated.name).write_bytes(work.generated.read_bytes())
        story.kept_by(journal.append)
        yield journal
