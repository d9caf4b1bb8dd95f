"""Reservations that contradict the inventory or themselves."""

from tests.unit.site.bad.site import variables

_TIMES = "start: '2026-12-24T08:00', duration: '4:00:00'"

SITES = (
    variables(
        "a reservation twice",
        f"slurm_reservations_planned: [{{name: a, {_TIMES}}}, {{name: a, {_TIMES}}}]\n",
        "group_vars/all.yml:1: reservation a is declared twice [duplicate-reservation]",
    ),
    variables(
        "a reservation without an end",
        "slurm_reservations_planned: [{name: a, start: '2026-12-24T08:00'}]\n",
        "group_vars/all.yml:1: reservation a has neither end nor duration [reservation-times]",
    ),
    variables(
        "a reservation that ends before it begins",
        "slurm_reservations_planned: [{name: a, start: '2026-12-24T08:00', end: '2026-12-24T07:00'}]\n",
        (
            "group_vars/all.yml:1: reservation a ends at 2026-12-24T07:00, and begins at 2026-12-24T08:00 "
            "[reservation-times]"
        ),
    ),
    variables(
        "a reservation that deploy would delete",
        f"slurm_reservations_planned: [{{name: deploy_1, {_TIMES}}}]\n",
        (
            "group_vars/all.yml:1: reservation deploy_1 has a name as deploy gives them to nodes that it "
            "drains [reservation-of-deploy]"
        ),
    ),
    variables(
        "a reservation of what is not there",
        f"slurm_reservations_planned: [{{name: a, {_TIMES}, groups: [big], nodes: ['node[1-3]']}}]\n",
        "group_vars/all.yml:1: reservation a names group big, node3: no compute node [reservation-unknown]",
    ),
    variables(
        "a reservation in no partition",
        f"slurm_reservations_planned: [{{name: a, {_TIMES}, partition: gpu}}]\n",
        (
            "group_vars/all.yml:1: reservation a names partition gpu, which is not declared "
            "[reservation-unknown]"
        ),
    ),
    variables(
        "a reservation of named nodes and a number",
        f"slurm_reservations_planned: [{{name: a, {_TIMES}, node_count: 1, nodes: [node1]}}]\n",
        "group_vars/all.yml:1: reservation a has node_count, and nodes or groups [reservation-nodes]",
    ),
    variables(
        "a reservation for users and for groups",
        f"slurm_reservations_planned: [{{name: a, {_TIMES}, users: [alice], user_groups: [course]}}]\n",
        (
            "group_vars/all.yml:1: reservation a has users and user_groups, of which Slurm takes one "
            "[reservation-users]"
        ),
    ),
    variables(
        "a reservation at no time",
        "slurm_reservations_planned: [{name: a, start: '2026-13-24T08:00', duration: '60'}]\n",
        (
            "group_vars/all.yml:1: slurm_reservations_planned[0].start is '2026-13-24T08:00', not a day "
            "and a time in quotes, as in 2026-12-24T08:00 [invalid-value]"
        ),
    ),
)
