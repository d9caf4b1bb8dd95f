"""REST APIs that are none, in the wrong place, or half a one."""

from tests.unit.site.bad.site import BadSite, variables

SITES = (
    variables(
        "settings of a REST API that is nowhere",
        "slurm_rest_requests_per_second: 30\n",
        (
            "group_vars/all.yml:1: warning: slurm_rest_requests_per_second is set for ctl1, and the "
            "cluster has no REST API [rest-off]"
        ),
    ),
    BadSite(
        "a REST API on a compute node, with half a certificate",
        expected=(
            (
                "group_vars/all.yml:1: slurm_rest_certificate is set for node1, and "
                "slurm_rest_certificate_key is not [rest-certificate-incomplete]"
            ),
            (
                "node1: node1 is to have the REST API, and is neither a controller nor a login node "
                "[rest-elsewhere]"
            ),
        ),
        edits=(("[slurm-node]", "[slurm-rest]\nnode1\n\n[slurm-node]"),),
        files={
            "group_vars/all.yml": (
                'slurm_rest_certificate: "-----BEGIN CERTIFICATE-----\\nMII=\\n-----END CERTIFICATE-----"\n'
            )
        },
    ),
)
