"""Users load an environment and use what is in it; what they use never changes under them."""

from molecule.conftest import MACHINES, Converge, On

_OTHER_CONTENT = """
import pathlib, zipfile
wheel = next(pathlib.Path('/srv/kept').glob('*.whl'))
other = pathlib.Path('/srv/wheels', wheel.name)
other.write_bytes(wheel.read_bytes())
with zipfile.ZipFile(other, 'a') as archive:
    archive.writestr('added.py', '')
"""


def as_alice(on: On, machine: str, script: str) -> str:
    return on(machine, "su", "--login", "alice", "--command", script).stdout


def test_user_loads_the_environment(on: On, machine: str) -> None:
    script = "module load torch && tinytorch && python -c 'import tinytorch; print(tinytorch.__file__)'"
    version, file = as_alice(on, machine, script).splitlines()
    assert version == "1.0"
    assert file.startswith("/srv/ml/environments/torch-2026a-")
    assert (
        as_alice(on, machine, "module load torch && module unload torch && which python3")
        == "/usr/bin/python3\n"
    )


def test_user_cannot_change_it(on: On, machine: str) -> None:
    script = "module load torch && touch $VIRTUAL_ENV/bin/python"
    answer = on(machine, "su", "--login", "alice", "--command", script, check=False)
    assert "Permission denied" in answer.stderr


def test_root_runs_nothing_of_it_and_owns_all_of_it(on: On, machine: str) -> None:
    assert "ran-as-0" not in on(machine, "ls", "/var/tmp").stdout
    not_roots = ["find", "/srv/ml", "(", "!", "-user", "root", "-o", "-perm", "/6022", "!", "-type", "l", ")"]
    assert on(machine, *not_roots).stdout == ""
    assert on(machine, "find", "/var/lib/ml_stack", "-mindepth", "1").stdout == ""
    touch = ["runuser", "--user=ml_stack", "--", "touch", "/srv/ml/environments/x"]
    assert "Permission denied" in on(machine, *touch, check=False).stderr


def test_a_source_archive_is_refused_before_its_code_runs(on: On, converge: Converge) -> None:
    answer = converge(tags="configure", package="tinytorch-source")
    assert answer.returncode == 2
    assert "Only wheels are installed" in answer.stdout + answer.stderr
    for machine in MACHINES:
        assert "ran-as-0" not in on(machine, "ls", "/var/tmp").stdout


def test_what_is_built_again_is_the_same_or_nothing(on: On, converge: Converge) -> None:
    on("trixie", "sh", "-c", "mkdir /srv/kept && mv /srv/wheels/tinytorch-1.0-* /srv/kept")
    on("trixie", "sh", "-c", "rm -r /srv/ml/environments/*")
    on("trixie", "python3", "-c", _OTHER_CONTENT)
    try:
        answer = converge(tags="configure")
        assert answer.returncode == 2
        said = answer.stdout + answer.stderr
        assert "DO NOT MATCH THE HASHES" in said
        assert "says what it was built of before" in said
    finally:
        on("trixie", "sh", "-c", "mv /srv/kept/* /srv/wheels")
    assert converge(tags="configure").returncode == 0
    assert as_alice(on, "trixie", "module load torch && tinytorch") == "1.0\n"


def test_what_cannot_be_built_is_said_and_leaves_nothing(on: On, converge: Converge) -> None:
    answer = converge(tags="configure", tinytorch="9.9")
    assert answer.returncode == 2
    assert "No matching distribution found for tinytorch==9.9" in answer.stdout + answer.stderr
    for machine in MACHINES:
        assert len(on(machine, "ls", "/srv/ml/environments").stdout.split()) == 1
        assert as_alice(on, machine, "module load torch && tinytorch") == "1.0\n"


def test_another_version_is_another_environment_and_the_old_one_stays(on: On, converge: Converge) -> None:
    before = {
        machine: as_alice(on, machine, "module load torch && echo $VIRTUAL_ENV") for machine in MACHINES
    }
    answer = converge(tags="configure", tinytorch="2.0")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for machine in MACHINES:
        assert as_alice(on, machine, "module load torch && tinytorch") == "2.0\n"
        # A job that loaded the module before still has this.
        assert as_alice(on, machine, f"{before[machine].strip()}/bin/tinytorch") == "1.0\n"


def test_a_host_that_does_not_see_the_environments_is_told(on: On, converge: Converge) -> None:
    assert converge(tags="configure", builds=False).returncode == 0
    on("trixie", "mv", "/srv/ml", "/srv/elsewhere")
    try:
        answer = converge(tags="configure", builds=False)
    finally:
        on("trixie", "mv", "/srv/elsewhere", "/srv/ml")
    said = answer.stdout + answer.stderr
    assert "/srv/ml/modulefiles/torch/2026a is not there. Is /srv/ml in storage that this host mounts" in said
    assert "fatal: [molecule-ml-stack-bookworm]" not in said
