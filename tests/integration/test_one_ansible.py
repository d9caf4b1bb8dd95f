"""The Ansible that serves all playbooks of a program that starts many."""

import subprocess
import sys
from pathlib import Path

import pytest

PLAYBOOK = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - ansible.builtin.copy:
        content: "{{ word }}"
        dest: "{{ playbook_dir }}/written"
    - ansible.builtin.fail:
        msg: as asked
      when: fails | default(false)
"""


def play(place: Path, *calls: str) -> str:
    """Standard output of a shell that says how each of its calls ended."""
    (place / "play.yml").write_text(PLAYBOOK)
    (place / "broken.yml").write_text("- hosts: all\n  tassks: []\n")
    script = "; ".join(f"ansible-playbook {call}; echo ended={place.name}=$?" for call in calls)
    command = [sys.executable, "-m", "tests.one_ansible", "sh", "-c", f"cd {place}; {script}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSIBLE_LOCALHOST_WARNING", "false")
    monkeypatch.setenv("ANSIBLE_INVENTORY_UNPARSED_WARNING", "false")
    monkeypatch.setenv("PYTHONWARNINGS", "default")  # Ansible and what it leads to have their own


def test_every_playbook_has_its_own_options_output_and_end(tmp_path: Path) -> None:
    said = play(
        tmp_path,
        "-e word=one play.yml",
        "-e word=two --check play.yml; cat written",
        "-e word=one -e fails=true play.yml",
        "-e word=one play.yml",
    )
    parts = said.split(f"ended={tmp_path.name}=")
    assert [part.count("PLAY RECAP") for part in parts] == [1, 1, 1, 1, 0]
    assert [next(word for word in part.split() if word.startswith("changed=")) for part in parts[:4]] == [
        "changed=1",
        "changed=1",
        "changed=0",
        "changed=0",
    ]
    assert [part[0] for part in parts[1:]] == ["0", "0", "2", "0"]
    assert (tmp_path / "written").read_text() == "one"


def test_syntax_is_checked_apart_and_a_playbook_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    said = play(
        tmp_path,
        "--syntax-check play.yml",
        "--syntax-check broken.yml",
        "broken.yml",
        "-e word=after play.yml",
    )
    ends = [part[0] for part in said.split(f"ended={tmp_path.name}=")[1:]]
    assert ends == ["0", "4", "4", "0"]
    assert (tmp_path / "written").read_text() == "after"
