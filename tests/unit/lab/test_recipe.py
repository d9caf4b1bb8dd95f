import io
import tarfile
from dataclasses import replace

from deploy.lab.recipe import Recipe, overlay_entries
from deploy.lab.tarball import Entry, pack

RECIPE = Recipe(
    release="trixie",
    sources=("deb http://mirror.example/debian trixie main",),
    apt_options=('Acquire::Check-Date "false";',),
)


def test_bootstrap_command() -> None:
    command = RECIPE.bootstrap_command("/x/overlay.tar", "/x/system.tar")
    assert command[0] == "mmdebstrap"
    assert command[-3:] == ["trixie", "/x/system.tar", *RECIPE.sources]
    assert '--aptopt=Acquire::Check-Date "false";' in command
    assert "--dpkgopt=force-unsafe-io" in command
    assert "--skip=cleanup/apt/lists" in command
    assert command[command.index("trixie") - 1] == "--customize-hook=tar-in /x/overlay.tar /"


def test_programs_are_unpacked_and_not_installed() -> None:
    command = replace(RECIPE, installs=False, packages=("user-mode-linux",)).bootstrap_command("o", "s")
    assert {"--variant=extract", "--include=user-mode-linux"} <= set(command)
    assert not any("hook" in word or "skip" in word for word in command)


def test_without_sources_mmdebstrap_chooses() -> None:
    assert replace(RECIPE, sources=()).bootstrap_command("o", "s")[-2:] == ["trixie", "s"]


def test_digest_changes_with_every_ingredient() -> None:
    variants = {
        RECIPE.digest,
        replace(RECIPE, release="bookworm").digest,
        replace(RECIPE, sources=()).digest,
        replace(RECIPE, apt_options=()).digest,
        replace(RECIPE, packages=()).digest,
        replace(RECIPE, files=()).digest,
        replace(RECIPE, installs=False).digest,
    }
    assert len(variants) == 7
    assert replace(RECIPE).digest == RECIPE.digest


def test_foreign_image_gets_the_same_files() -> None:
    text = replace(RECIPE, release="registry.example/ubuntu:24.04").containerfile()
    assert text.startswith("FROM registry.example/ubuntu:24.04\nRUN apt-get update && ")
    assert "chroot" not in text
    assert text.endswith("ADD overlay.tar /\n")


def test_passwords_do_not_open_a_machine() -> None:
    texts = {entry.path: entry.text or "" for entry in overlay_entries()}
    settings = texts["/etc/ssh/sshd_config.d/10-lab.conf"].splitlines()
    assert {
        "PasswordAuthentication no",
        "KbdInteractiveAuthentication no",
        "PermitRootLogin no",
    } <= set(settings)


def test_sudoers_file_has_the_mode_that_sudo_wants() -> None:
    modes = {entry.path: entry.mode for entry in overlay_entries()}
    assert modes["/etc/sudoers.d/admin"] == 0o440


def test_archive_keeps_owner_mode_and_kind() -> None:
    archive = pack(
        [
            Entry("/home/.ssh", mode=0o700, uid=990, gid=991),
            Entry("/home/.ssh/key", "text\n", mode=0o600, uid=990, gid=991),
            Entry("/etc/masked", link="/dev/null"),
        ]
    )
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        directory, file, link = tar.getmembers()
        content = tar.extractfile(file)
        assert content is not None
        assert content.read() == b"text\n"
    assert (directory.name, directory.isdir(), directory.mode, directory.uid) == (
        "home/.ssh",
        True,
        0o700,
        990,
    )
    assert (file.name, file.mode, file.uid, file.gid) == ("home/.ssh/key", 0o600, 990, 991)
    assert (link.issym(), link.linkname) == (True, "/dev/null")
