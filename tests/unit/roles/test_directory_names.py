"""Which names and ids a host and its directory both have."""

from tests.unit.roles.loading import load_module

names = load_module("roles/sssd/module_utils/directory_names.py")
LOCAL = ["root:x:0:0:root:/root:/bin/bash", "pia:x:2002:2002::/home/pia:/bin/sh", "+", ""]


def test_a_name_in_both_is_told_with_its_ids() -> None:
    (told,) = names.clashes("passwd", LOCAL, ["pia:*:20005:20000:Pia:/home/pia:/bin/sh"])
    assert told.startswith("account pia is in /etc/passwd and in the directory (uid: 2002 here, 20005 there)")
    (told,) = names.clashes("passwd", LOCAL, ["pia:*:2002:2002:Pia:/home/pia:/bin/sh"])
    assert "(uid: the same)" in told


def test_an_id_of_two_is_told_once() -> None:
    lena = "lena:*:2002:20000:Lena:/home/lena:/bin/sh"
    (told,) = names.clashes("passwd", LOCAL, [lena, lena])
    assert told.startswith(
        "uid 2002 is pia's in /etc/passwd and lena's in the directory, who has pia's files"
    )


def test_groups_are_told_by_their_own_words() -> None:
    (told,) = names.clashes("group", ["video:x:44:"], ["video:*:20044:lena"])
    assert told.startswith("group video is in /etc/group and in the directory (gid: 44 here, 20044 there)")


def test_others_are_nobodys_concern() -> None:
    assert names.clashes("passwd", LOCAL, ["lena:*:20001:20000:Lena:/home/lena:/bin/sh"]) == []
