"""What the exit codes say, for --help and docs/cli.md."""

from collections.abc import Mapping

from deploy.errors import ExitCode

MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.OK: "done: converged, nothing to complain about, nothing to do",
    ExitCode.FAILED: "a task or a check failed on a host; what succeeded on others stays",
    ExitCode.BAD_INPUT: "the site, an option or the command line is wrong; nothing was changed",
    ExitCode.CHANGES_PENDING: "a run would change something",
    ExitCode.UNREACHABLE: "a host could not be reached, or its host key is not the known one",
    ExitCode.INTERNAL: "a fault of deploy itself",
    ExitCode.INTERRUPTED: "interrupted",
}
