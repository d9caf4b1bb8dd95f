from pathlib import Path

from tests.unit.roles.loading import load_module

module = load_module("roles/bootstrap/module_utils/put_aside.py")


def test_files_are_moved_and_found_again(tmp_path: Path) -> None:
    file, gone = tmp_path / "etc" / "x.conf", tmp_path / "gone"
    file.parent.mkdir()
    file.write_text("x")
    (done,) = module.put_aside([str(file), str(gone)], tmp_path / "aside")
    assert not file.exists()
    target = Path(done.partition(" put aside as ")[2])
    assert target.read_text() == "x"
    assert str(target).endswith(str(file))
    assert (tmp_path / "aside").stat().st_mode & 0o777 == 0o700


def test_services_are_those_whose_units_are_overridden() -> None:
    paths = [
        "/etc/systemd/system/slurmd.service.d/x.conf",
        "/run/systemd/system/slurmd.service.d/y.conf",
        "/etc/systemd/system/munge.service",
        "/etc/systemd/system/service.d/all.conf",
        "/etc/sysctl.d/zz.conf",
    ]
    assert module.services_of(paths) == ["slurmd.service", "munge.service"]
    assert module.are_units(paths)
    assert not module.are_units(paths[-1:])
