from typing import Any

import pytest

from deploy.site.versions import catalogue


@pytest.mark.parametrize("architecture", ["amd64", "arm64"])
def test_the_catalogue_has_every_package_once_for_every_architecture(architecture: str) -> None:
    wheels: list[dict[str, Any]] = catalogue()["gpu_exporter_wheels"]
    fitting = [wheel for wheel in wheels if wheel.get("architecture") in {None, architecture}]
    names = [wheel["url"].rpartition("/")[2].partition("-")[0] for wheel in fitting]
    assert sorted(names) == ["nvidia_ml_py", "nvitop", "nvitop_exporter", "prometheus_client", "psutil"]
    assert all(wheel["sha256"] and wheel["url"].endswith(".whl") for wheel in wheels)
