"""Logins and firewalls that contradict the rest of the site."""

from tests.unit.site.bad.site import ALL, MASTER, NODES, BadSite, variables
from tests.unit.site.sites import NODE_VARIABLES

PEM = "-----BEGIN CERTIFICATE----- A -----END CERTIFICATE-----"
PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + 43 * "A"
SITES = (
    variables(
        "a prolog that makes no room for sessions",
        "slurmctld_parameters: {PrologFlags: ''}\n",
        (
            "group_vars/slurm-master.yml:1: PrologFlags is taken away: without Contain nobody could log in "
            "to a compute node by ssh [prolog-without-contain]"
        ),
        file=MASTER,
    ),
    variables(
        "keyboard-interactive for whoever comes to a node",
        "ssh_server_parameters: {authenticationmethods: 'publickey,keyboard-interactive:pam'}\n",
        (
            "group_vars/all.yml:1: AuthenticationMethods asks for keyboard-interactive in any case; on "
            "node1, which users enter by their jobs, sshd takes that from admins alone: a session that "
            "begins so is no part of a job [keyboard-interactive]"
        ),
        file=ALL,
    ),
    BadSite(
        "a firewall that does not know all hosts",
        expected=(
            (
                "group_vars/all.yml:1: the inventory has no address of node1, node2, so the firewall would "
                "cut it off from the cluster [firewall-without-addresses]"
            ),
        ),
        edits=(("node1 ansible_host=10.0.0.11", "node1"), ("node2 ansible_host=10.0.0.12", "node2")),
        files={"group_vars/all.yml": "firewall_admin_networks: [192.0.2.0/24]\n"},
    ),
    BadSite(
        "a server of logs that does not know all hosts",
        expected=(
            (
                "inventory.ini:2: warning: the inventory has no address of node1, so ctl1 might take no logs "
                "from there, and nobody would be told [logs-without-addresses]"
            ),
        ),
        edits=(
            ("node1 ansible_host=10.0.0.11", "node1"),
            ("[slurm-cluster:children]", "[slurm-log]\nctl1\n\n[slurm-cluster:children]"),
        ),
    ),
    BadSite(
        "services of the cluster alone in a site of names",
        expected=(
            (
                "login1: the inventory has no address of any host, so log_server_senders would be empty and "
                "the service there open to everybody [services-without-addresses]"
            ),
            (
                "login1: the inventory has no address of any host, so package_cache_clients would be "
                "empty and the service there open to everybody [services-without-addresses]"
            ),
        ),
        edits=(
            ("ctl1 ansible_host=10.0.0.1", "ctl1"),
            ("login1 ansible_host=10.0.0.2", "login1"),
            ("node1 ansible_host=10.0.0.11", "node1"),
            ("node2 ansible_host=10.0.0.12", "node2"),
            (
                "[slurm-cluster:children]",
                "[slurm-cache]\nlogin1\n\n[slurm-log]\nlogin1\n\n[slurm-cluster:children]",
            ),
        ),
    ),
    variables(
        "keys with restrictions that let nobody in",
        (
            "users_accounts:\n  - name: alice\n    uid: 2001\n    ssh_keys:\n"
            f"      - 'form=\"192.0.2.1\" {PUBLIC}'\n"
            f"      - 'from=\"192.0.2.1/24,*.site.example\",restrict,pty {PUBLIC}'\n"
            f"      - 'expiry-time=\"31.12.2027\" {PUBLIC}'\n"
            f"      - 'expiry-time=\"20200131\" {PUBLIC}'\n"
        ),
        (
            'group_vars/all.yml:1: alice: ssh_keys[0]: form="192.0.2.1" is no restriction that sshd knows '
            "[key-restriction]"
        ),
        (
            "group_vars/all.yml:1: alice: ssh_keys[1]: from=192.0.2.1/24 is no address, network or name "
            "[key-restriction]"
        ),
        (
            "group_vars/all.yml:1: alice: ssh_keys[2]: expiry-time=31.12.2027 is no date, as in "
            "expiry-time=20271231 [key-restriction]"
        ),
        "group_vars/all.yml:1: warning: alice: ssh_keys[3]: it was valid until 2020-01-31 [key-restriction]",
    ),
    variables(
        "an opening in no wall",
        "firewall_open: [{ports: ['3000']}]\n",
        (
            "group_vars/all.yml:1: warning: firewall_open is set for ctl1, which has no firewall "
            "[firewall-off]"
        ),
    ),
    variables(
        "settings of a directory that nobody asks",
        "sssd_allow_groups: [research]\n",
        (
            "group_vars/all.yml:1: warning: sssd_allow_groups is set for ctl1, which asks no directory "
            "[directory-off]"
        ),
    ),
    variables(
        "a directory without an entry to begin with, a password of nobody's, and sudo that asks for none",
        "sssd_servers: [ldaps://ldap.site.example]\nsssd_bind_password: k3Y-of-the-directory-8\n"
        "sssd_passwords: false\nsssd_sudo_groups: [{name: operators}]\n",
        (
            "group_vars/all.yml:1: people come from a directory, and no variable says below which entry of "
            "it they are [directory-incomplete]"
        ),
        (
            "group_vars/all.yml:2: there is a sssd_bind_password and no sssd_bind_dn: the directory would be "
            "asked as nobody [directory-incomplete]"
        ),
        (
            "group_vars/all.yml:4: sudo asks members of operators for a password, and sssd_passwords is "
            "false: nobody has one [directory-incomplete]"
        ),
    ),
    variables(
        "a directory for nodes alone",
        f"{NODE_VARIABLES}sssd_servers: [ldaps://ldap.site.example]\nsssd_search_base: dc=site,dc=example\n",
        (
            "group_vars/slurm-node.yml:2: warning: people of the directory are unknown on ctl1, login1: "
            "their jobs fail there, and Slurm refuses them [directory-not-everywhere]"
        ),
        file=NODES,
    ),
    variables(
        "a directory in the clear, and people with ids of the system",
        "sssd_servers: [http://ldap.site.example]\nsssd_search_base: dc=site,dc=example\nsssd_min_id: 100\n",
        (
            "group_vars/all.yml:1: sssd_servers[0] is 'http://ldap.site.example', not a server as "
            "ldaps://HOST, or ldap://HOST, which has to speak StartTLS [invalid-value]"
        ),
        "group_vars/all.yml:3: sssd_min_id is 100, not a number from 1000 to 4294967294 [invalid-value]",
    ),
    variables(
        "a network that is none",
        "firewall_admin_networks: [office]\n",
        (
            "group_vars/all.yml:1: firewall_admin_networks[0] is 'office', not an address or a network, as "
            "in 10.0.0.0/16 [invalid-value]"
        ),
    ),
    variables(
        "a proxy with a password",
        "proxy_http: http://ops:k3Y@proxy.example:3128\n",
        (
            "group_vars/all.yml:1: warning: proxy_http has a user and a password in it: only apt is told; "
            "users, and the files that deploy fetches on hosts, go out without it [proxy-with-password]"
        ),
    ),
    variables(
        "a proxy that is no URL",
        "proxy_http: proxy.example:3128\n",
        "group_vars/all.yml:1: proxy_http: the value is wrong (not shown: it is secret) [invalid-value]",
    ),
    BadSite(
        "logs that are sent with TLS to a server without",
        expected=(
            (
                "group_vars/slurm-node.yml:2: logs go to ctl1; node1 has a log_client_ca, and the server no "
                "certificate: its logs would not arrive [log-tls-on-one-side]"
            ),
        ),
        edits=(("[slurm-cluster:children]", "[slurm-log]\nctl1\n\n[slurm-cluster:children]"),),
        files={NODES: f"{NODE_VARIABLES}log_client_ca: {PEM}\n"},
    ),
    BadSite(
        "a log server with a certificate and no key",
        expected=(
            (
                "group_vars/slurm-master.yml:1: ctl1 has a log_server_certificate and no log_server_key: "
                "it could not speak TLS [log-tls-on-one-side]"
            ),
        ),
        edits=(("[slurm-cluster:children]", "[slurm-log]\nctl1\n\n[slurm-cluster:children]"),),
        files={MASTER: f"log_server_certificate: {PEM}\n", NODES: f"{NODE_VARIABLES}log_client_ca: {PEM}\n"},
    ),
    BadSite(
        "a key of the log server that is none",
        expected=(
            (
                "group_vars/slurm-master.yml:2: log_server_key is no private key as PEM text without "
                "passphrase [unfit-secret]"
            ),
        ),
        edits=(("[slurm-cluster:children]", "[slurm-log]\nctl1\n\n[slurm-cluster:children]"),),
        files={
            ALL: f"log_client_ca: {PEM}\n",
            MASTER: f"log_server_certificate: {PEM}\nlog_server_key: /etc/ssl/private/logs.key\n",
        },
    ),
)
