"""Where backups go; a script takes sftp's place."""

import sys
from pathlib import Path

import pytest

from deploy.run.archive_places import Local, PlaceError, Remote, place

LISTED = """sftp> ls -lan backups
-rw-------    1 1000     1000        30920 Nov 25 01:41 backups/c-20261125T014107Z.age
drwx------    2 1000     1000         4096 Nov 25 01:41 backups/older
"""
REFUSAL = "ssh: No route to host\nConnection closed"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What was typed to sftp, which lists one archive, and refuses all when the file `refuses` is there."""
    log = tmp_path / "asked"
    sftp = tmp_path / "sftp"
    sftp.write_text(
        f"#!{sys.executable}\nimport os, sys\ntext = sys.stdin.read()\n"
        f"open({str(log)!r}, 'a').write(' '.join(sys.argv[1:]) + '\\n' + text)\n"
        f"if os.path.exists({str(tmp_path / 'refuses')!r}): sys.exit({REFUSAL!r})\n"
        f"print({LISTED!r})\n"
    )
    sftp.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return log


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/mnt/backups", Local(Path("/mnt/backups"))),
        ("backups", Local(Path("backups"))),
        ("./a:b", Local(Path("./a:b"))),
        ("keeper@vault:backups/", Remote("keeper@vault", "backups")),
        ("vault:", Remote("vault", ".")),
    ],
)
def test_a_place_is_written_as_scp_has_it(text: str, expected: object) -> None:
    assert place(text) == expected


@pytest.mark.parametrize("text", ["-oProxyCommand=x:y", "vault:a b", "vault:a;b", "va ult:a", "vault:$(x)"])
def test_what_ssh_or_sftp_would_take_for_something_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither a directory nor"):
        place(text)


def test_an_archive_gets_its_name_when_it_is_whole(asked: Path) -> None:
    vault = Remote("keeper@vault", "backups")
    with vault.filled() as directory:
        (directory / "c-20261125T014107Z.age").write_bytes(b"x")
        assert "put" not in asked.read_text()
    lines = asked.read_text().splitlines()
    assert lines[0].endswith("-o StrictHostKeyChecking=yes -o ConnectTimeout=10 keeper@vault")
    part = "backups/.c-20261125T014107Z.age.part"
    assert lines[-2:] == [f"chmod 600 {part}", f"rename {part} backups/c-20261125T014107Z.age"]
    assert not directory.exists()
    assert "ls -lan backups" not in lines
    vault.sizes()
    assert asked.read_text().splitlines()[-1] == "ls -lan backups"
    assert vault.sizes() == {"c-20261125T014107Z.age": 30920}
    assert vault.of("a.age") == "keeper@vault:backups/a.age"


def test_a_place_that_does_not_answer_is_known_before_anything_is_made(asked: Path) -> None:
    (asked.parent / "refuses").touch()
    with pytest.raises(PlaceError, match=r"^ssh: No route to host$"), Remote("vault", "backups").filled():
        pytest.fail("it was begun")


def test_a_directory_here_is_not_made_in_the_place_of_a_mount(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), Local(tmp_path / "mount" / "backups").filled():
        pytest.fail("it was begun")
    assert [*tmp_path.iterdir()] == []


def test_a_directory_here(tmp_path: Path) -> None:
    here = Local(tmp_path / "new")
    assert here.sizes() == {}
    with here.filled() as directory:
        (directory / "a").write_bytes(b"xy")
    assert here.sizes() == {"a": 2}
    assert here.directory.stat().st_mode & 0o777 == 0o700
    here.remove(["a"])
    assert here.sizes() == {}
