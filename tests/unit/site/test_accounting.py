"""What the roles' own code judges offline is found by a command that no test prepared."""

import subprocess
import sys


def test_the_judges_are_found_by_a_process_of_its_own() -> None:
    program = "from deploy.site import accounting as a; a._users_judge(); a._accounting_judge()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
