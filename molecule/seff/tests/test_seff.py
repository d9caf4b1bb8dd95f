"""The program is there and counts; what sacct says is played back, as there is no Slurm here."""

from molecule.conftest import Converge, On

SACCT = r"""#!/bin/sh
case "$*" in *--jobs=7*) exit 0;; esac
cat <<'END'
5|lab|alice|staff|TIMEOUT|0:0|1|4|01:00:00|1800|60|billing=4,cpu=4,gres/gpu=2,mem=8G,node=1|||a name|with bars
5.batch|lab||||0:0|1|4|01:00:00|1800|||1|cpu=01:00:00,mem=6G,vmem=9G|batch
END
"""


def test_it_says_what_a_job_used(on: On, machine: str) -> None:
    on(machine, "sh", "-c", "cat > /usr/bin/sacct; chmod 755 /usr/bin/sacct", data=SACCT)
    said = on(machine, "setpriv", "--reuid=nobody", "--clear-groups", "seff", "5").stdout
    assert "CPU Efficiency: 50.00% of 02:00:00 core-walltime\n" in said
    assert "Memory Efficiency: 75.00% of 8.00 GB\n" in said
    assert "State: TIMEOUT (exit code 0)\n" in said
    none = on(machine, "seff", "7", check=False)
    assert (none.returncode, none.stderr) == (1, "seff: no job 7 that you may see\n")


def test_reportseff_is_there_for_users_and_goes_where_it_is_not_wanted(
    on: On, converge: Converge, machine: str
) -> None:
    version = ("setpriv", "--reuid=nobody", "--clear-groups", "reportseff", "--version")
    assert on(machine, *version).stdout == "reportseff, version 2.10.3\n"
    answer = converge(only=machine, reportseff=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert on(machine, "ls", "/usr/local/bin").stdout == "seff\n"
    assert converge(only=machine).returncode == 0
