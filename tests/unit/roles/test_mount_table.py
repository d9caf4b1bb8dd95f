from importlib import import_module

import pytest

import tests.unit.roles.loading  # noqa: F401 - makes module_utils known

table = import_module("ansible.module_utils.mount_table")
Mount = table.Mount

MOUNTINFO = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,nosuid shared:2 - nfs4 10.0.0.1:/home rw,vers=4.2,rsize=1048576,hard
31 22 0:41 / /mnt/two\\040words ro - tmpfs tmpfs rw,size=4k
32 22 0:42 / /home/alice rw - tmpfs tmpfs rw
"""
HOME = Mount("10.0.0.1:/home", "/home", "nfs", ("hard", "nosuid"))


def test_mountinfo() -> None:
    root, home, words, _ = table.parse_mountinfo(MOUNTINFO)
    assert (root.path, root.source, root.kind) == ("/", "/dev/sda1", "ext4")
    assert {"nosuid", "vers=4.2", "hard"} <= set(home.options)
    assert words.path == "/mnt/two words"


@pytest.mark.parametrize(
    ("path", "mount"),
    [("/home/bob/x", "/home"), ("/home/alice", "/home/alice"), ("/homes", "/"), ("/home", "/home")],
)
def test_what_holds_a_path(path: str, mount: str) -> None:
    found = table.containing(path, table.parse_mountinfo(MOUNTINFO))
    assert found.path == mount


def test_the_last_mount_at_a_place_is_seen() -> None:
    over = MOUNTINFO + "33 22 0:43 / /home rw - ext4 /dev/sdb1 rw\n"
    assert table.at("/home", table.parse_mountinfo(over)).source == "/dev/sdb1"
    assert table.at("/srv", table.parse_mountinfo(over)) is None


@pytest.mark.parametrize(
    ("source", "options", "differing"),
    [
        ("10.0.0.1:/home", ("hard", "nosuid"), []),
        ("10.0.0.1:/home/", ("vers=4", "nfsvers=4.2", "_netdev", "noatime"), []),
        ("10.0.0.1:/home", ("rsize=4194304",), []),
        ("10.0.0.2:/home", (), ["10.0.0.1:/home instead of 10.0.0.2:/home"]),
        ("10.0.0.1:/home", ("ro",), ["rw instead of ro"]),
        ("10.0.0.1:/home", ("soft",), ["hard instead of soft"]),
        ("10.0.0.1:/home", ("vers=3",), ["vers=4.2 instead of vers=3"]),
    ],
)
def test_only_what_the_kernel_shows_can_differ(
    source: str, options: tuple[str, ...], differing: list[str]
) -> None:
    there = table.at("/home", table.parse_mountinfo(MOUNTINFO))
    assert table.differences(Mount(source, "/home", "nfs", options), there) == differing


@pytest.mark.parametrize(
    ("wanted", "there", "is_same"),
    [
        ("mon1.site,mon2:6789:/work", "10.0.0.4,10.0.0.5:6789:/work", True),
        ("mon1.site,mon2.site:/work", "10.0.0.4,10.0.0.5:/other", False),
        ("10.0.0.4,10.0.0.5:/work", "10.0.0.4,10.0.0.5:/work", True),
        ("10.0.0.4:/work", "10.0.0.5:/work", False),
        ("[fd00::4],[fd00::5]:6789:/", "[fd00::4],[fd00::5]:6789:/", True),
        ("[fd00::4]:/", "[fd00::6]:/", False),
    ],
)
def test_monitors_of_ceph_are_shown_by_their_addresses(wanted: str, there: str, *, is_same: bool) -> None:
    """mount.ceph resolves names, and the kernel knows only what that made of them."""
    found = table.differences(Mount(wanted, "/w", "ceph"), Mount(there, "/w", "ceph", ("rw",)))
    assert found == ([] if is_same else [f"{there} instead of {wanted}"])
    assert table.differences(Mount("a:/w", "/w", "nfs"), Mount("10.0.0.1:/w", "/w", "nfs", ("rw",)))


def test_what_was_mounted_again_for_reading_alone_is_another() -> None:
    there = table.at("/mnt/two words", table.parse_mountinfo(MOUNTINFO))
    assert table.differences(Mount("tmpfs", there.path, "tmpfs"), there) == ["ro instead of rw"]
    assert table.differences(Mount("tmpfs", there.path, "tmpfs", ("ro",)), there) == []


def test_the_block_of_a_role_is_added_replaced_and_removed() -> None:
    own = "/dev/sda1 / ext4 defaults 0 1"
    once = table.with_block(own, "nfs_client", [HOME])
    assert once.startswith(own + "\n# BEGIN nfs_client")
    assert "\n10.0.0.1:/home /home nfs hard,nosuid 0 0\n" in once
    assert table.with_block(once, "nfs_client", [HOME]) == once
    other = table.with_block(once, "network_mounts", [Mount("a:/v", "/v", "glusterfs")])
    assert table.in_block(other, "nfs_client") == [HOME]
    assert table.with_block(table.with_block(other, "nfs_client", []), "network_mounts", []) == own + "\n"


def test_a_path_with_a_space_survives() -> None:
    mount = Mount("10.0.0.1:/my data", "/my data", "nfs", ("rw",))
    assert table.parse_fstab(mount.line) == [mount]


def test_comments_and_half_lines_are_no_mounts() -> None:
    assert table.parse_fstab("# /dev/sdb1 /x ext4 defaults\n\n/dev/sdb1 /x\n") == []


def test_a_lost_restriction_differs_and_comes_back_without_an_unmount() -> None:
    wanted = Mount("/dev/sdb1", "/s", "ext4", ("nosuid", "nodev"))
    there = Mount("/dev/sdb1", "/s", "ext4", ("rw", "nodev", "noatime"))
    assert table.differences(wanted, there) == ["without nosuid"]
    assert table.remounted(wanted, there) == "remount,bind,nodev,noatime,nosuid"
    assert table.remounted(wanted, Mount("/dev/sdc1", "/s", "ext4", there.options)) == ""
    assert table.remounted(wanted, Mount("/dev/sdb1", "/s", "ext4", ("rw", "nosuid", "nodev"))) == ""
