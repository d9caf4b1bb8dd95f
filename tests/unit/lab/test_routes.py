from ipaddress import IPv4Network

from deploy.lab.routes import routed


def test_destinations_of_routes() -> None:
    answer = '[{"dst":"default","dev":"eth0"},{"dst":"10.88.0.0/16"},{"dst":"192.0.2.7"}]'
    assert list(routed(answer)) == [IPv4Network("10.88.0.0/16"), IPv4Network("192.0.2.7/32")]


def test_no_routes() -> None:
    assert list(routed("")) == []
