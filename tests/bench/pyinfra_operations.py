"""What pyinfra runs: packages, accounts, files and services as state.json beside it has them for a host."""

import json
from pathlib import Path

from pyinfra import host
from pyinfra.operations import apt, files, server, systemd

state = json.loads(Path("state.json").read_text(encoding="utf-8"))[host.name]

apt.packages(name="packages", packages=state["packages"])
for line in host.loop(state["groups"]):
    group, gid = line.split()
    server.group(name=f"group {group}", group=group, gid=int(gid))
for line in host.loop(state["users"]):
    user, _, uid, _, _, home, shell = line.split(":")
    server.user(name=f"user {user}", user=user, uid=int(uid), home=home, shell=shell, ensure_home=False)
for file in host.loop(state["files"]):
    placed = {"user": file["user"], "group": file["group"], "mode": file["mode"]}
    if file["source"]:
        files.put(name=file["path"], src=file["source"], dest=file["path"], **placed)
    else:
        files.directory(name=file["path"], path=file["path"], **placed)
for service in host.loop(state["services"]):
    enabled = True if service in state["enabled"] else None
    systemd.service(name=service, service=service, running=True, enabled=enabled)
