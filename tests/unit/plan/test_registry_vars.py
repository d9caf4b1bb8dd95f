"""The registry of images: who has it, who trusts it, and who takes images from it."""

from pathlib import Path
from typing import Any

from deploy.plan.build import build_plan
from deploy.plan.generated_inventory import generated_inventory
from deploy.site.inventory import read_site
from tests.unit.site.sites import INVENTORY, write_site

CONTAINERS = f"{INVENTORY}\n[slurm-container:children]\nslurm-node\n"
REGISTRY = f"{CONTAINERS}\n[slurm-registry]\nctl1\n"
UPSTREAMS = "slurm_registry_upstreams: [{name: docker.io}, {name: nvcr.io}]\n"


def wired(place: Path, inventory: str = REGISTRY, text: str = UPSTREAMS) -> dict[str, Any]:
    site = read_site(write_site(place, inventory, {"group_vars/all.yml": text}))
    groups: dict[str, Any] = generated_inventory(site, build_plan(site), {})["all"]["children"]
    return groups


def test_nodes_take_images_from_its_caches_and_trust_what_follows_from_its_key(tmp_path: Path) -> None:
    groups = wired(tmp_path)
    assert list(groups["phase_registry"]["hosts"]) == ["ctl1"]
    assert groups["phase_check"]["hosts"]["ctl1"]["slurm_registry_names"] == ["10.0.0.1", "ctl1"]
    assert groups["phase_containers"]["vars"] == {
        "enroot_registry": "ctl1:5000",
        "enroot_registry_ca": (
            "{{ (slurm_registry_key | registry_identity(['10.0.0.1', 'ctl1'])).certificate }}"
        ),
        "enroot_registry_upstreams": ["docker.io", "nvcr.io"],
    }


def test_caches_go_out_through_the_proxy_of_their_host(tmp_path: Path) -> None:
    host = wired(tmp_path)["phase_check"]["hosts"]["ctl1"]
    assert (host["slurm_registry_upstream_proxy"], host["slurm_registry_no_proxy"]) == ("", [])
    text = "proxy_http: http://ops:k3Y@proxy.example:3128\nproxy_no_proxy: [.site.example]\n"
    host = wired(tmp_path, text=text)["phase_check"]["hosts"]["ctl1"]
    assert host["slurm_registry_upstream_proxy"] == "{{ proxy_http }}"
    direct = "{{ ['ctl1', 'login1', '10.0.0.1', '10.0.0.2', '10.0.0.0/24'] + proxy_no_proxy }}"
    assert host["slurm_registry_no_proxy"] == direct
    host = wired(tmp_path, text=f"{text}proxy_https: ''\n")["phase_check"]["hosts"]["ctl1"]
    assert host["slurm_registry_upstream_proxy"] == "{{ proxy_https or proxy_http }}"


def test_the_sites_own_certificate_is_checked_with_its_authority(tmp_path: Path) -> None:
    certificate = "-----BEGIN CERTIFICATE-----\\nMII=\\n-----END CERTIFICATE-----"
    text = f'slurm_registry_certificate: "{certificate}"\nslurm_registry_port: 5443\n'
    told = wired(tmp_path, text=text)["phase_containers"]["vars"]
    assert (told["enroot_registry"], told["enroot_registry_ca"]) == ("ctl1:5443", "")


def test_without_one_nobody_is_told_of_any(tmp_path: Path) -> None:
    groups = wired(tmp_path, CONTAINERS, "")
    assert groups["phase_containers"]["vars"] == {}
    assert groups["phase_registry"]["hosts"] == {}
    assert "slurm_registry_names" not in groups["phase_check"]["hosts"]["ctl1"]


def test_what_watches_asks_it_and_it_says_how_full_it_is(tmp_path: Path) -> None:
    groups = wired(tmp_path, f"{REGISTRY}\n[slurm-metric]\nctl1\n")
    asked = groups["phase_targets"]["vars"]["scrape_targets_jobs"]["blackbox"]
    assert [one["targets"] for one in asked if one["labels"]["service"] == "registry"] == [
        ["https://10.0.0.1:5000/health"]
    ]
    assert groups["phase_check"]["hosts"]["ctl1"]["slurm_registry_textfile_directory"]
