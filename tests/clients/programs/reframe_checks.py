"""A test that passes on a node, and one that does not."""

import reframe
from reframe.utility import sanity


class _Hostname(reframe.RunOnlyRegressionTest):
    valid_systems = ["lab:batch"]  # noqa: RUF012 - ReFrame's own way
    valid_prog_environs = ["plain"]  # noqa: RUF012
    executable = "hostname"
    time_limit = "5m"


@reframe.simple_test
class OnANode(_Hostname):
    """It runs where jobs run."""

    @sanity_function  # noqa: F821 - of ReFrame, in its classes
    def ran_there(self) -> object:
        """The host's name is in the output."""
        return sanity.assert_found("node1", self.stdout)


@reframe.simple_test
class OnTheLoginNode(_Hostname):
    """It would not."""

    @sanity_function  # noqa: F821 - of ReFrame, in its classes
    def ran_here(self) -> object:
        """The host's name is in the output."""
        return sanity.assert_found("login1", self.stdout)
