"""Portals that nobody could use, or everybody."""

from tests.unit.site.bad.site import BadSite, variables

SITES = (
    variables(
        "settings of a portal that is nowhere",
        "slurm_portal_idle_minutes: 30\n",
        (
            "group_vars/all.yml:1: warning: slurm_portal_idle_minutes is set for ctl1, and the cluster "
            "has no portal [portal-off]"
        ),
    ),
    BadSite(
        "a portal on hosts without Slurm",
        expected=(
            (
                "web1: web1 is to start jobs of the portal's users, and gets none of Slurm's commands "
                "[portal-without-slurm]"
            ),
            "web2: the portal is one, and [slurm-portal] names 2 hosts [portal-on-several-hosts]",
        ),
        edits=(
            (
                "[slurm-node]",
                "[slurm-portal]\nweb1 ansible_host=10.0.0.31\nweb2 ansible_host=10.0.0.32\n\n[slurm-node]",
            ),
            (
                "[slurm-cluster:children]",
                "[slurm-cluster:children]\nslurm-portal",
            ),
        ),
    ),
    BadSite(
        "a provider of logins without TLS",
        expected=(
            (
                "group_vars/all.yml:1: the portal has no name at the provider of slurm_portal_oidc "
                "[portal-oidc-client]"
            ),
            (
                "group_vars/all.yml:1: the portal would take from http://login.site.example, without TLS, "
                "who somebody is [portal-oidc-issuer]"
            ),
        ),
        edits=(("[slurm-node]", "[slurm-portal]\nctl1\n\n[slurm-node]"),),
        files={
            "group_vars/all.yml": (
                "slurm_portal_oidc: {issuer: 'http://login.site.example', title: our site}\n"
            )
        },
    ),
    BadSite(
        "a hub whose place any user could take",
        expected=(
            (
                "group_vars/all.yml:1: while the hub is away any user on ctl1 could listen on port 8081 in "
                "its place, and would get what people type at their login [portal-hub-port]"
            ),
        ),
        edits=(("[slurm-node]", "[slurm-portal]\nctl1\n\n[slurm-node]"),),
        files={"group_vars/all.yml": "slurm_portal_hub_port: 8081\n"},
    ),
    BadSite(
        "images without containers, of one name",
        expected=(
            (
                "group_vars/all.yml:1: two images of the portal are called a, of which users get the first "
                "[portal-image-twice]"
            ),
            (
                "group_vars/all.yml:1: the portal offers container images, and no node can start one "
                "[portal-images-without-containers]"
            ),
        ),
        edits=(("[slurm-node]", "[slurm-portal]\nctl1\n\n[slurm-node]"),),
        files={
            "group_vars/all.yml": (
                "slurm_portal_images: [{name: a, title: A, image: /a.sqsh}, "
                "{name: a, title: B, image: /b.sqsh}]\n"
            )
        },
    ),
    BadSite(
        "half a certificate, and a program on a port",
        expected=(
            (
                "group_vars/all.yml:1: slurm_portal_certificate is set for ctl1, and "
                "slurm_portal_certificate_key is not [portal-certificate-incomplete]"
            ),
            (
                "group_vars/all.yml:2: code would listen on a port, where everybody on the node could open "
                "it [portal-app-on-a-port]"
            ),
        ),
        edits=(("[slurm-node]", "[slurm-portal]\nctl1\n\n[slurm-node]"),),
        files={
            "group_vars/all.yml": "slurm_portal_certificate: /etc/ssl/portal.crt\n"
            "jupyter_server_apps: [{name: code, title: Code, command: [code-server, --port, '8080']}]\n"
        },
    ),
)
