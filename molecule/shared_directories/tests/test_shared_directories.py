"""Who may write there, whose what they write is, and that root goes where it is told and nowhere else."""

from molecule.conftest import Converge, On


def as_user(on: On, machine: str, user: str, script: str) -> tuple[int, str]:
    answer = on(machine, "su", "--login", user, "--command", script, check=False)
    return answer.returncode, answer.stdout + answer.stderr


def test_the_group_writes_and_what_it_writes_is_the_groups(on: On, machine: str) -> None:
    made = (
        "umask 002; mkdir -p /srv/data/set && touch /srv/data/set/file && stat --format=%G /srv/data/set/file"
    )
    assert as_user(on, machine, "bob", made) == (0, "software\n")
    assert as_user(on, machine, "builder", "rm -r /srv/data/set") == (0, "")


def test_others_read_where_the_mode_lets_them(on: On, machine: str) -> None:
    assert as_user(on, machine, "alice", "ls /srv/data") == (0, "inner\n")
    assert "Permission denied" in as_user(on, machine, "alice", "touch /srv/data/x")[1]
    assert "Permission denied" in as_user(on, machine, "alice", "ls /srv/data/inner")[1]


def test_a_mode_that_somebody_changed_is_put_right(on: On, converge: Converge, machine: str) -> None:
    on(machine, "chmod", "0777", "/srv/data")
    answer = converge(only=machine)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert on(machine, "stat", "--format=%a %U %G", "/srv/data").stdout == "2775 builder software\n"


def test_a_link_of_a_user_who_owns_what_is_above_is_refused(on: On, converge: Converge, machine: str) -> None:
    assert as_user(on, machine, "builder", "ln --symbolic /etc /srv/data/link")[0] == 0
    answer = converge(only=machine, inner="/srv/data/link")
    on(machine, "rm", "/srv/data/link")
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "/srv/data/link is a symbolic link" in answer.stdout + answer.stderr
    assert on(machine, "stat", "--format=%a %U", "/etc").stdout == "755 root\n"


def test_nothing_is_made_beside_a_storage_that_is_not_there(on: On, converge: Converge, machine: str) -> None:
    answer = converge(only=machine, inner="/srv/storage/data")
    assert answer.returncode == 2, answer.stdout + answer.stderr
    assert "/srv/storage is not there. Is the storage mounted?" in answer.stdout + answer.stderr
    assert on(machine, "ls", "/srv").stdout == "data\n"
