"""Alerts and dashboards as data; docs/generate.py makes rules, runbooks and Grafana's JSON of them."""
