from pathlib import Path

import pytest

from deploy.errors import DeployError
from deploy.validate.benchmarks import PORTS, Benchmarks, Tool, module_with_torch, read_benchmarks
from deploy.validate.programs.performance import expected, fabric_of
from deploy.validate.thresholds import read_thresholds

TEXT = """
programs:
  nccl: {command: /opt/nccl/all_reduce_perf, modules: [cuda, nccl-tests]}
  nvbandwidth: /opt/nvbandwidth
  dcgm: {image: /images/dcgm.sqsh}
bus_bandwidth:
  - {gpu: A100-SXM, gpus: 4, fabric: node, gb_per_s: 235}
  - {gpu: A100, fabric: 4x200, gb_per_s: 90}
bus_bandwidth_percent: 80
"""


def test_the_sites_own_come_first(tmp_path: Path) -> None:
    (tmp_path / "validation.yml").write_text(TEXT)
    found = read_thresholds(tmp_path)
    assert found.bus_bandwidth_percent == 80
    tools = found.benchmarks.tools
    assert tools["nccl"] == Tool("/opt/nccl/all_reduce_perf", ("cuda", "nccl-tests"))
    assert (tools["nvbandwidth"], tools["dcgm"]) == (
        Tool("/opt/nvbandwidth"),
        Tool("dcgmi", (), "/images/dcgm.sqsh"),
    )
    assert found.benchmarks.own == {"nccl", "nvbandwidth", "dcgm"}
    plan = found.benchmarks.plan(80)
    assert expected(plan["expected"], plan["ports"], "NVIDIA A100-SXM4-40GB", 4, None) == 235
    assert expected(plan["expected"], plan["ports"], "NVIDIA A100-SXM4-40GB", 4, [200.0] * 4) == 90
    assert expected(plan["expected"], plan["ports"], "NVIDIA A100-SXM4-80GB", 8, None) == 228


@pytest.mark.parametrize(
    ("gpu", "gpus", "links", "figure"),
    [
        ("NVIDIA H100 80GB HBM3", 8, None, 460),
        ("NVIDIA H100 PCIe", 8, None, None),
        ("NVIDIA H100 80GB HBM3", 4, None, None),
        ("NVIDIA H200", 8, None, 431),
        ("NVIDIA GH200 480GB", 8, None, None),
        # Eight ports of 400 Gb/s; two more of 100 belong to storage.
        ("NVIDIA H100 80GB HBM3", 8, [400.0] * 8 + [100.0] * 2, 8 * 46),
        # A GPU uses one port.
        ("NVIDIA H100 80GB HBM3", 4, [400.0] * 8, 4 * 46),
        ("NVIDIA A100-SXM4-40GB", 8, [200.0] * 8, 192),
        ("NVIDIA A100-SXM4-40GB", 8, [100.0], None),
        ("NVIDIA A100-SXM4-40GB", 8, [], None),
    ],
)
def test_our_figures(gpu: str, gpus: int, links: list[float] | None, figure: float | None) -> None:
    plan = Benchmarks().plan(90)
    assert expected(plan["expected"], dict(PORTS), gpu, gpus, links) == figure


def test_a_fabric_in_a_word() -> None:
    assert (fabric_of([400.0] * 8 + [100.0]), fabric_of([])) == ("8x400", "none")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("programs: {nccll: x}", "programs: there is no nccll; there are nccl, nvbandwidth"),
        ("programs: {nccl: 3}", "programs.nccl: a command, or command, modules and image, and nothing else"),
        ("programs: {nccl: {binary: x}}", "programs.nccl: a command"),
        ("programs: {nccl: {modules: cuda}}", "programs.nccl: a command"),
        ("programs: x", "programs: not a mapping"),
        ("bus_bandwidth: x", "bus_bandwidth, entry 1: gpu, fabric and gb_per_s"),
        ("bus_bandwidth: [{gpu: A100, fabric: node, gb_per_s: 0}]", "bus_bandwidth, entry 1"),
        ("bus_bandwidth: [{gpu: 'A(', fabric: node, gb_per_s: 1}]", "bus_bandwidth, entry 1"),
        ("bus_bandwidth: [{gpu: A, fabric: node, gb_per_s: 1, gpus: none}]", "bus_bandwidth, entry 1"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "validation.yml").write_text(f"{text}\n")
    with pytest.raises(DeployError) as caught:
        read_thresholds(tmp_path)
    assert caught.value.findings[0].message.startswith(said)


def test_nothing_of_the_kind() -> None:
    assert read_benchmarks({}) == (Benchmarks(), [])


def test_the_environment_that_has_torch() -> None:
    environments = [
        {"name": "jax", "version": "1", "requirements": ["jax==0.5", "torchvision==1"]},
        {"name": "pytorch", "version": "2.9.1", "requirements": ["torch==2.9.1"]},
    ]
    assert [*module_with_torch(environments)] == ["pytorch/2.9.1"]
    assert [*module_with_torch(None)] == []
