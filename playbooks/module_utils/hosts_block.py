"""The block that deploy keeps in /etc/hosts, told apart from what others write there."""

from __future__ import annotations

import re

BEGIN = "# BEGIN cluster hosts (kept by deploy: changes inside this block are lost)"
END = "# END cluster hosts"
BLOCK = re.compile(rf"^{re.escape(BEGIN)}\n.*?^{re.escape(END)}\n", re.MULTILINE | re.DOTALL)
INSTALLER_LOOPBACK = "127.0.1.1"
"""The address that Debian's installer gives to the machine's own name."""
