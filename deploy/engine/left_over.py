"""Step: what is there and not in the inventory any more: hosts, and things on hosts."""

from deploy.engine.recording import Written
from deploy.engine.run import Run
from deploy.engine.story import Story
from deploy.engine.work import Work
from deploy.judge.departed import left_over_events
from deploy.judge.summary import summarize


def tell_left_over(run: Run, work: Work, written: Written, story: Story) -> None:
    """Names it, also what hosts said that were just written to; remembers the hosts."""
    departed = work.looked.departed.result()
    hosts = summarize(story.events, run.hosts).hosts
    found = {**work.left, **written.left}
    if run.options.is_whole:
        unheard = [name for name, host in hosts.items() if host.is_good and name not in found]
        found |= run.records.left_over(unheard)
    for event in left_over_events(found, departed, run.inventory):
        story.tell(event)
    if not run.options.check:
        gone = [host.name for host in departed if host.is_gone]
        known = work.looked.known if written.members is None else written.members
        run.members.remember(known, hosts, gone)
