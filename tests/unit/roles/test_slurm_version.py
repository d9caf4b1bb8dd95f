from tests.unit.roles.loading import load_module

module = load_module("playbooks/module_utils/host_checks/slurm_version.py")
OFFERED = "slurm-client:\n  Installed: (none)\n  Candidate: 24.11.5-4\n  Version table:\n"


def answers(**outputs: str) -> object:
    return lambda program, *_: outputs.get(program.replace("-", "_"), "")


def test_what_is_installed_counts() -> None:
    assert module.slurm_version(answers(dpkg_query="ii  22.05.8-4+deb12u3", apt_cache=OFFERED)) == (
        "22.05.8-4+deb12u3"
    )


def test_else_what_the_archive_offers() -> None:
    assert module.slurm_version(answers(apt_cache=OFFERED)) == "24.11.5-4"
    assert module.slurm_version(answers(dpkg_query="rc  22.05.8", apt_cache=OFFERED)) == "24.11.5-4"


def test_what_is_built_for_the_host_counts_before_what_the_archive_offers() -> None:
    assert module.slurm_version(answers(apt_cache=OFFERED), "26.05") == "26.05"
    assert module.slurm_version(answers(dpkg_query="ii  24.11.5-1"), "26.05") == "24.11.5-1"


def test_a_machine_that_gets_another_source_is_not_judged_by_what_it_has_without() -> None:
    assert module.slurm_version(answers(apt_cache=OFFERED), has_other_source=True) == ""
    installed = answers(dpkg_query="ii  26.05.5-1", apt_cache=OFFERED)
    assert module.slurm_version(installed, has_other_source=True) == "26.05.5-1"


def test_nothing_to_be_had() -> None:
    assert module.slurm_version(answers(apt_cache=OFFERED.replace("24.11.5-4", "(none)"))) == ""
    assert module.slurm_version(answers()) == ""


def test_a_slurm_that_cannot_do_without_munge_is_refused() -> None:
    (finding,) = module.check_auth("22.05.8-4+deb12u3", "auth/slurm")
    assert (finding["severity"], finding["reference"]) == ("error", "auth-slurm-too-old")
    assert "its Slurm 22.05.8-4+deb12u3 has no auth/slurm with several keys" in finding["message"]
    for version, auth_type in (
        ("22.05.8", "auth/munge"),
        ("24.05.0", "auth/slurm"),
        ("26.05", "auth/slurm"),
        ("", ""),
    ):
        assert not [*module.check_auth(version, auth_type)]
    assert [*module.check_auth("23.11.4", "auth/slurm")]
