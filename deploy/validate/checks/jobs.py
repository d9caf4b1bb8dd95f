"""What jobs saw: that they run, stay within their bounds, and are in the books."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from deploy.validate import slurm_text
from deploy.validate.context import Context, first_error, last_line, without_jobs
from deploy.validate.result import Result, failed, not_applicable, not_measured, passed

_DENIED = frozenset({"EPERM", "EACCES"})
_ARRAY_TASKS = 4
_GATE = "no active jobs"
_DOOR = "pam_slurm_adopt"
_FOR_ITS_MEMORY = re.compile(r"oom-kill event|Out Of Memory")
"""What slurmstepd and srun say of a step whose process the kernel killed for its memory."""
Judge = Callable[[Context], Iterator[Result]]


def with_jobs(judge: Judge) -> Judge:
    """A check that says nothing of its own where no job was run."""

    def judged(context: Context) -> Iterator[Result]:
        if context.jobs is None:
            yield without_jobs(context)
        else:
            yield from judge(context)

    judged.__doc__ = judge.__doc__
    return judged


def _taken(node: str) -> Result:
    return not_measured("its resources belong to jobs of users at the moment", node)


def _why(context: Context, node: str) -> str:
    return f"scontrol show node {node}; journalctl -u slurmd -e   (on {context.controller} and {node})"


def _answers(context: Context) -> dict[str, Mapping[str, Any]]:
    """By node, what its probe saw."""
    return {node: run["answers"][0] for node, run in context.runs("probes").items() if run["answers"]}


def on_every_node(context: Context) -> Iterator[Result]:
    """A user's job runs on every node."""
    if context.jobs is None:
        result = without_jobs(context)
        login = context.site.logins[0].name
        user = (context.questions.plan or {}).get("partition")
        hint = f'su --login {user} --command "srun -p {user} -A {user} hostname"   (on {login})'
        yield failed(result.message, login, hint=hint) if user else result
    for node, run in context.runs("probes").items():
        if context.is_taken(node, run):
            yield _taken(node)
        elif run["code"] != 0 or not run["answers"]:
            yield failed(last_line(run), node, hint=_why(context, node))
        elif run["answers"][0]["node"] != node:
            yield failed(f"the job ran on {run['answers'][0]['node']}", node, hint=_why(context, node))
        else:
            yield passed(
                f"ran, {run['seconds']:.1f} s from srun to its end", node, value=run["seconds"], unit="s"
            )


@with_jobs
def on_all_nodes(context: Context) -> Iterator[Result]:
    """One job runs on all nodes at once."""
    run = (context.jobs or {}).get("together")
    if run is None:
        yield not_measured("no node could take a job")
        return
    nodes = [node for node, probe in context.runs("probes").items() if probe["code"] == 0]
    told = {answer["node"] for answer in run["answers"]}
    missing = [node for node in nodes if node not in told]
    if run["code"] != 0 and not run["answers"]:
        yield failed(
            last_line(run), hint=f"scontrol show config | grep -i -e tree -e port   (on {context.controller})"
        )
    for node in missing if run["answers"] else ():
        yield failed(f"no task of the common job answered: {last_line(run)}", node, hint=_why(context, node))
    if not missing and run["code"] == 0:
        yield passed(f"{len(told)} nodes in {run['seconds']:.1f} s", value=run["seconds"], unit="s")


@with_jobs
def array(context: Context) -> Iterator[Result]:
    """The tasks of an array all run."""
    job = (context.jobs or {}).get("array")
    if not job:
        trouble = (context.jobs or {}).get("trouble") or ["the array was not taken"]
        yield failed(trouble[0], hint=f"scontrol show partition {context.questions.marker}")
        return
    states = [row["State"] for row in context.rows if row["JobID"].startswith(f"{job}_")]
    done = states.count("COMPLETED")
    if done == _ARRAY_TASKS:
        yield passed(f"{done} tasks of job {job} completed")
    elif "PENDING" in states:
        yield not_measured(f"{done} of {_ARRAY_TASKS} tasks of job {job} completed, others still wait")
    else:
        yield failed(f"job {job}: {', '.join(states) or 'no task'} in accounting", hint=f"sacct --jobs={job}")


@with_jobs
def gpu_binding(context: Context) -> Iterator[Result]:
    """A job may open as many GPUs as it asked for, no others, and nobody else's."""
    wanted = (context.questions.plan or {}).get("gpus") or {}
    divided = (context.questions.plan or {}).get("divided") or []
    if not wanted and not divided:
        yield not_applicable("no node has GPUs")
    for node in divided:
        yield not_measured("its GPUs are divided; which instances a job may open is not looked at", node)
    for node, count in wanted.items():
        singles, whole = context.runs("single").get(node), context.runs("all_gpus").get(node)
        if not singles or whole is None:
            yield not_measured("no job ran there", node)
            continue
        if any(context.is_taken(node, run) for run in (*singles, whole)):
            yield _taken(node)
            continue
        wrong = list(_wrong_gpus(singles, whole, count))
        if wrong:
            yield failed(
                "; ".join(dict.fromkeys(wrong)),
                node,
                hint=f"scontrol show config | grep -i constrain; cat cgroup.conf gres.conf   (on {node})",
            )
        else:
            yield passed(f"1 of {count} for a job with one, {count} for a job with all", node)


def _open_devices(run: Mapping[str, Any]) -> frozenset[str]:
    devices = run["answers"][0]["devices"]
    return frozenset(path for path, said in devices.items() if said not in _DENIED)


def _wrong_gpus(singles: list[Mapping[str, Any]], whole: Mapping[str, Any], count: int) -> Iterator[str]:
    for run in singles:
        if not run["answers"]:
            yield f"a job with one GPU: {last_line(run)}"
        elif len(found := _open_devices(run)) != 1:
            yield f"a job with one GPU could open {len(found)}: {', '.join(sorted(found)) or 'none'}"
    told = [run for run in singles if run["answers"]]
    if len(told) == 2 and _overlap(told) and _open_devices(told[0]) & _open_devices(told[1]):  # noqa: PLR2004
        yield "two jobs with one GPU each had the same at once"
    if not whole["answers"]:
        yield f"a job with all GPUs: {last_line(whole)}"
    elif len(found := _open_devices(whole)) != count:
        yield f"a job with all {count} GPUs could open {len(found)}: {', '.join(sorted(found)) or 'none'}"


def _overlap(runs: list[Mapping[str, Any]]) -> bool:
    one, other = (run["answers"][0] for run in runs)
    return bool(one["from"] < other["to"] and other["from"] < one["to"])


@with_jobs
def cpu_binding(context: Context) -> Iterator[Result]:
    """A job has the CPUs that it asked for, not those of others."""
    for node, answer in _answers(context).items():
        row = context.row(answer["job"])
        if row is None:
            yield not_measured(f"job {answer['job']} is not in accounting", node)
            continue
        given = int(slurm_text.tres(row["AllocTRES"]).get("cpu", "0"))
        if answer["cpus"] > given:
            hint = f"scontrol show config | grep -i -e taskplugin -e constrain   (on {node})"
            yield failed(f"a job with {given} CPUs may use {answer['cpus']}", node, hint=hint)
        else:
            yield passed(f"{answer['cpus']} of {given}", node)
    if not _answers(context):
        yield not_measured("no job ran on a node")


@with_jobs
def memory_limit(context: Context) -> Iterator[Result]:
    """A job that takes more memory than it asked for is ended."""
    for node, run in context.runs("memory").items():
        row = context.out_of_memory.get(node)
        if context.is_taken(node, run):
            yield _taken(node)
        elif run["code"] == 0:
            hint = f"scontrol show config | grep -i constrainram; cat cgroup.conf   (on {node})"
            yield failed("a job used three times its memory and was not ended", node, hint=hint)
        elif row:
            yield passed(f"job {row['JobID']} ended as OUT_OF_MEMORY", node)
        elif _FOR_ITS_MEMORY.search(run["said"]):
            # Its row in the accounting comes later on a busy cluster, or names the step's end alone.
            yield passed("it ended for its memory, as its step says", node)
        else:
            yield failed(
                f"it ended, but not for its memory: {last_line(run)}", node, hint=_why(context, node)
            )
    if not context.runs("memory"):
        yield not_measured("no job ran on a node")


@with_jobs
def time_limit(context: Context) -> Iterator[Result]:
    """A job that stays longer than its time limit is ended."""
    limit = (context.jobs or {}).get("limit")
    if limit is None:
        yield not_measured("takes more than a minute; left out by --quick")
    elif not limit["job"]:
        yield failed(limit["why"], hint="scontrol show partition")
    elif limit["states"] == ["TIMEOUT"]:
        yield passed(f"job {limit['job']} with one minute ended after {limit['seconds']:.0f} s")
    elif limit["states"] == ["PENDING"]:
        yield not_measured(f"job {limit['job']} got no resources")
    else:
        said = ", ".join(limit["states"]) or "not in accounting"
        hint = f"scontrol show config | grep -i overtimelimit   (on {context.controller})"
        yield failed(
            f"job {limit['job']} with one minute is {said} after {limit['seconds']:.0f} s", hint=hint
        )


@with_jobs
def accounting(context: Context) -> Iterator[Result]:
    """Every job has its row in accounting, complete and right."""
    user = str((context.questions.plan or {}).get("partition"))
    for node, answer in _answers(context).items():
        row = context.row(answer["job"])
        hint = f"sacct --jobs={answer['job']}; sdiag   (on {context.controller})"
        if row is None:
            yield failed(f"job {answer['job']} is not in accounting", node, hint=hint)
            continue
        expected = {"User": user, "Account": user, "Partition": user, "QOS": user, "State": "COMPLETED"}
        expected |= {"ExitCode": "0:0", "NodeList": node}
        wrong = [f"{key} is {row[key]}, not {value}" for key, value in expected.items() if row[key] != value]
        resources = slurm_text.tres(row["AllocTRES"])
        wrong += [f"no {name} in AllocTRES" for name in ("cpu", "mem", "node") if name not in resources]
        if wrong:
            yield failed(f"job {answer['job']}: {'; '.join(wrong)}", node, hint=hint)
        else:
            yield passed(f"job {answer['job']}", node)
    for node, runs in context.runs("single").items():
        for answer in (run["answers"][0] for run in runs if run["answers"]):
            row = context.row(answer["job"])
            if row is not None and slurm_text.tres(row["AllocTRES"]).get("gres/gpu") != "1":
                hint = f"scontrol show config | grep AccountingStorageTRES   (on {context.controller})"
                yield failed(
                    f"job {answer['job']} had a GPU, accounting has {row['AllocTRES']}", node, hint=hint
                )
    if not _answers(context):
        yield not_measured("no job ran on a node")


@with_jobs
def private_directories(context: Context) -> Iterator[Result]:
    """What a job writes to $TMPDIR and /tmp is its own and gone with it."""
    for node, answer in _answers(context).items():
        told = answer.get("private") or {}
        left = [
            p for p in (context.answers.leftovers.get(node) or {}).get("leftovers", []) if p.startswith("/")
        ]
        hint = (
            f"scontrol show config | grep -iE 'jobcontainer|namespace'; cat job_container.conf   (on {node})"
        )
        if told.get("error"):
            yield failed(f"a job cannot write there: {told['error']}", node, hint=hint)
        elif left:
            yield failed(f"a job's file is still there: {', '.join(left)}", node, hint=hint)
        elif node not in context.answers.leftovers:
            yield not_measured("the node could not be looked at afterwards", node)
        else:
            yield passed(f"TMPDIR={told.get('TMPDIR') or 'not set'}, gone afterwards", node)
    if not _answers(context):
        yield not_measured("no job ran on a node")


@with_jobs
def shared_home(context: Context) -> Iterator[Result]:
    """What is written in a home on one host is there on all others."""
    nonce, read_here = context.questions.nonce, context.runs("shared")
    for node, answer in _answers(context).items():
        told = answer.get("shared") or {}
        hint = f"findmnt --target /home   (on {node} and {context.site.logins[0].name})"
        if told.get("error"):
            yield failed(f"the login node's file is not there: {told['error']}", node, hint=hint)
        elif told.get("nonce") != nonce:
            yield failed("another file than the login node's is there", node, hint=hint)
        elif node in read_here and read_here[node] != nonce:
            yield failed(f"the node's file is not on the login node: {read_here[node]}", node, hint=hint)
        else:
            yield passed(f"the same home as on {context.site.logins[0].name}", node)
    if not _answers(context):
        yield not_measured("no job ran on a node")


@with_jobs
def nothing_left(context: Context) -> Iterator[Result]:
    """No process of a job outlives it."""
    for node, answer in context.answers.leftovers.items():
        left = [line for line in answer["leftovers"] if line.startswith("process: ")]
        if left:
            yield failed(
                "; ".join(left), node, hint=f"scontrol show config | grep -i proctrack   (on {node})"
            )
        else:
            yield passed("no process", node)


@with_jobs
def ssh_gate(context: Context) -> Iterator[Result]:
    """Users log in on a node only with a job there, and end up in that job."""
    closed = (context.questions.plan or {}).get("ssh_nodes") or []
    if not closed:
        yield not_applicable("no compute node is closed to logins")
    for node in closed:
        told = context.runs("ssh").get(node)
        if told is None:
            yield not_measured("no job ran there", node)
        else:
            yield _refusal(context, node, told) or _adoption(context, node, told)


def _gate_hint(context: Context, node: str) -> str:
    return f"journalctl -u ssh -e   (on {node}); deploy cluster {context.inventory} --limit {node} --full"


def _refusal(context: Context, node: str, told: Mapping[str, Any]) -> Result | None:
    """What is wrong with the answer to a login without a job; None when it was as it should be."""
    without = told["without"]
    if without is None:
        return not_measured(told["why"], node)
    if without["code"] == 0:
        return failed("a user without a job there got in", node, hint=_gate_hint(context, node))
    if "publickey" in without["said"] and _has_other_homes(context, node):
        return not_measured("its homes are not those of the login node, so it knows no keys", node)
    if _GATE not in without["said"]:
        said = f"refused, but not for want of a job: {last_line(without)}"
        return failed(said, node, hint=_gate_hint(context, node))
    return None


def _adoption(context: Context, node: str, told: Mapping[str, Any]) -> Result:
    """What came of a login with a job."""
    within = told["within"]
    if within is None:
        return not_measured(f"no job for the login started: {told['why']}", node)
    if within["code"] != 0:
        lines = [line.strip() for line in within["said"].splitlines() if _DOOR in line]
        said = f"a user with a job there was refused: {lines[0] if lines else last_line(within)}"
        return failed(said, node, hint=_gate_hint(context, node))
    if not _is_beside(told, within["said"]):
        return failed("the login is not in the job's cgroup", node, hint=_gate_hint(context, node))
    return passed("refused without a job, in the job's cgroup with one", node)


def _is_beside(told: Mapping[str, Any], groups: str) -> bool:
    """Whether cgroups are of the job: by its number, or from Slurm 26.05 on by what its step says."""
    step = told.get("step") or {"said": ""}
    return f"/job_{told['job']}/" in groups or not _directories(groups).isdisjoint(_directories(step["said"]))


def _directories(groups: str) -> set[str]:
    """The directories of a job, as /proc/PID/cgroup has them: those above a step's."""
    return {line.partition("/step_")[0] for line in groups.splitlines() if "/step_" in line}


def _has_other_homes(context: Context, node: str) -> bool:
    answer = _answers(context).get(node) or {}
    return "error" in (answer.get("shared") or {})


@with_jobs
def containers(context: Context) -> Iterator[Result]:
    """A job with a container image sees the image, on every node that offers containers."""
    wanted = (context.questions.plan or {}).get("container_nodes") or []
    if not wanted:
        yield not_applicable("no compute node offers containers")
        return
    trouble = [text for text in (context.jobs or {}).get("trouble") or [] if "container" in text]
    for node in wanted:
        run = context.runs("container").get(node)
        hint = (
            f"srun -w {node} --container-image=IMAGE cat /etc/os-release; journalctl -u slurmd   (on {node})"
        )
        if run is None:
            yield not_measured(trouble[0] if trouble else "no job ran there", node)
        elif context.is_taken(node, run):
            yield _taken(node)
        elif run["code"] != 0:
            yield failed(last_line(run), node, hint=hint)
        elif context.questions.nonce not in run["said"]:
            yield failed("the job ran on the host instead of in its container", node, hint=hint)
        else:
            yield passed("the image's os-release", node)


@with_jobs
def mpi(context: Context) -> Iterator[Result]:
    """An MPI program started by srun has all its ranks."""
    run = (context.jobs or {}).get("mpi")
    if not (context.questions.plan or {}).get("has_mpi"):
        yield not_applicable("the site has no MPI")
    elif run is None:
        yield not_measured("no node could take a job")
    elif any(context.is_taken(node.name, run) for node in context.site.nodes):
        yield not_measured("jobs of users take the nodes at the moment")
    else:
        told = sorted(answer["rank"] for answer in run["answers"])
        sizes = {answer["ranks"] for answer in run["answers"]}
        if told == list(range(run["expected"])) and sizes == {run["expected"]}:
            hosts = {answer["host"] for answer in run["answers"]}
            yield passed(f"{run['expected']} ranks on {len(hosts)} nodes", value=run["seconds"], unit="s")
        else:
            said = f"{len(told)} of {run['expected']} ranks answered" if told else first_error(run)
            yield failed(said, hint="srun --mpi=list; scontrol show config | grep MpiDefault")
