from pathlib import Path

import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/bootstrap/module_utils/quiet_install.py")

POLICY = """\
chrony:
  Installed: (none)
  Candidate: 4.6.1-3
  Version table:
     4.6.1-3 500
        500 http://deb.example trixie/main amd64 Packages
sackd:
  Installed: (none)
  Candidate: (none)
  Version table:
munge:
  Installed: 0.5.16-1
  Candidate: 0.5.16-1
"""


def test_only_what_the_archive_has_is_a_candidate() -> None:
    assert module.candidates(POLICY) == {"chrony", "munge"}
    assert module.candidates("") == set()


def test_what_is_there_is_not_wanted_again() -> None:
    assert module.wanted(["munge", "chrony", "munge", "slurmd"], ["chrony"]) == ["munge", "slurmd"]


def test_daemons_are_refused_only_while_it_lasts(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with module.no_daemon_starts(policy) as environment:
        assert environment == {"SYSTEMD_OFFLINE": "1"}
        assert policy.read_text().endswith("exit 101\n")
        assert policy.stat().st_mode & 0o777 == 0o755
    assert not policy.exists()


def test_a_failed_installation_leaves_no_policy(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with pytest.raises(OSError, match="disk"), module.no_daemon_starts(policy):
        raise OSError("disk")
    assert not policy.exists()


def test_an_admins_own_policy_stays(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    with module.no_daemon_starts(policy) as environment:
        assert environment == {}
        assert policy.read_text() == "#!/bin/sh\nexit 0\n"
    assert policy.read_text() == "#!/bin/sh\nexit 0\n"
    assert not module.forget_left_behind(policy)


def test_the_policy_of_a_killed_run_is_removed(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    killed = module.no_daemon_starts(policy)
    killed.__enter__()
    assert policy.exists()
    assert module.forget_left_behind(policy)
    assert not policy.exists()
    assert not module.forget_left_behind(policy)
