"""The users' portal: where it is, its certificate, and programs that everybody on a node could open."""

from collections.abc import Iterator

from deploy.errors import Finding, Severity
from deploy.site.half_given import half_given
from deploy.site.inventory import CONTAINER, NODE, PORTAL, Host, Site

_SOCKET = "{unix_socket}"
_FIRST_OF_USERS = 1024


def check_portal(site: Site) -> Iterator[Finding]:
    """All of it."""
    portals = site.group(PORTAL)
    if not portals:
        yield from _portal_that_is_off(site)
        return
    host = portals[0]
    where = host.where("slurm_portal_port")
    if portals[1:]:
        yield Finding(
            portals[1].name,
            "portal-on-several-hosts",
            f"the portal is one, and [{PORTAL}] names {len(portals)} hosts",
            f"leave one of them below [{PORTAL}]",
        )
    if host not in (*site.logins, *site.controllers, *site.nodes):
        yield Finding(
            where,
            "portal-without-slurm",
            f"{host.name} is to start jobs of the portal's users, and gets none of Slurm's commands",
            f"name it below [slurm-login], too: {host.name}",
        )
    if half := half_given(host, "slurm_portal"):
        yield Finding(
            half.where,
            "portal-certificate-incomplete",
            half.message,
            f"write where it is on {host.name}: {half.missing}: /etc/ssl/…",
        )
    yield from _port_of_hub(host)
    yield from _provider(host)
    yield from _images(site, host)
    yield from dict.fromkeys(_open_to_all(site))


def _port_of_hub(host: Host) -> Iterator[Finding]:
    port = host.value("slurm_portal_hub_port")
    if isinstance(port, int) and port >= _FIRST_OF_USERS:
        yield Finding(
            host.where("slurm_portal_hub_port"),
            "portal-hub-port",
            f"while the hub is away any user on {host.name} could listen on port {port} in its place, "
            "and would get what people type at their login",
            f"choose a port below {_FIRST_OF_USERS}, or remove slurm_portal_hub_port",
        )


def _provider(host: Host) -> Iterator[Finding]:
    said = host.value("slurm_portal_oidc")
    issuer, where = str(said.get("issuer", "")), host.where("slurm_portal_oidc")
    if said and not issuer.startswith("https://"):
        yield Finding(
            where,
            "portal-oidc-issuer",
            f"the portal would take from {issuer or 'nobody'}, without TLS, who somebody is",
            "write the provider's address: issuer: https://…",
        )
    if said and not said.get("client_id"):
        yield Finding(
            where,
            "portal-oidc-client",
            "the portal has no name at the provider of slurm_portal_oidc",
            "register the portal there, and write the name: client_id: portal",
        )


def _images(site: Site, host: Host) -> Iterator[Finding]:
    name = next(
        (name for name in ("slurm_portal_images", "slurm_portal_own_images") if host.value(name)), None
    )
    if name and not site.containers:
        yield Finding(
            host.where(name),
            "portal-images-without-containers",
            "the portal offers container images, and no node can start one",
            f"name [{NODE}] below [{CONTAINER}:children], or remove {name}",
        )
    names = [str(each.get("name")) for each in host.value("slurm_portal_images")]
    if twice := next((one for one in names if names.count(one) > 1), None):
        yield Finding(
            host.where("slurm_portal_images"),
            "portal-image-twice",
            f"two images of the portal are called {twice}, of which users get the first",
            "give each a name of its own",
        )


def _open_to_all(site: Site) -> Iterator[Finding]:
    for node in site.nodes:
        for app in node.value("jupyter_server_apps"):
            if not any(_SOCKET in str(word) for word in app.get("command", [])):
                yield Finding(
                    node.where("jupyter_server_apps"),
                    "portal-app-on-a-port",
                    f"{app.get('name')} would listen on a port, where everybody on the node could open it",
                    f"have its command listen on a socket: {_SOCKET} stands for the path",
                )


def _portal_that_is_off(site: Site) -> Iterator[Finding]:
    for host in site.cluster:
        name = next(
            (name for name in host.variables if name.startswith(("slurm_portal_", "jupyter_server_"))), None
        )
        if name:
            yield Finding(
                host.where(name),
                "portal-off",
                f"{name} is set for {host.name}, and the cluster has no portal",
                f"name its host below [{PORTAL}]",
                Severity.WARNING,
            )
            return
