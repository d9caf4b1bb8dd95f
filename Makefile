# Every target works from a fresh checkout: it installs what it needs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
BIN := .venv/bin
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)
LAB_PACKAGES := podman runc netavark aardvark-dns mmdebstrap uidmap iptables openssh-client gpg gpg-agent gpgv age
RELEASE ?= trixie
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: help newest venv system demo demo-down test test-more lint docs release unit contract prometheus-programs integration molecule molecule-more browser cluster cluster-more servers upgrade-long update-long reliability kills power clients slurm-testsuite bench clean clean-labs

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: .venv/installed ## Make .venv with everything pinned; .venv/bin/deploy is the command

.venv/installed: pyproject.toml requirements.lock
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

system: ## Install what the lab needs from the distribution (Debian, Ubuntu)
	@for program in podman runc mmdebstrap newuidmap gpg gpg-agent age /usr/lib/podman/netavark; do \
	  command -v $$program >/dev/null && continue; \
	  echo "installing for the lab: $(LAB_PACKAGES)"; \
	  $(SUDO) apt-get update -qq; \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends $(LAB_PACKAGES) >/dev/null; \
	  break; \
	done

demo: venv system ## Boot a lab, deploy a cluster on it, run a job
	@$(BIN)/deploy demo --release $(RELEASE)

demo-down: ## Remove the demo's lab and everything it left; images that another lab runs from stay
	@$(BIN)/deploy lab down --name demo --delete-dir
	@podman images --quiet localhost/deploy-lab | sort -u | xargs --no-run-if-empty podman rmi >/dev/null 2>&1 || true

# Says how long each stage took.
STAGES = for stage in $(1); do began=$$SECONDS; $(MAKE) --no-print-directory $$stage; \
	echo "== $$stage: $$((SECONDS - began)) s"; done

# Of the Pythons that are here, the last that ansible-core's newest releases take; nothing where there is none.
NEWEST ?= $(lastword $(shell ls -d $(HOME)/.pyenv/versions/3.1[2-9]*/bin/python3 /usr/bin/python3.1[2-9] 2>/dev/null | sort -V))

MEETS_ANSIBLE := tests/unit/run $(filter-out %prometheus.py %dashboards.py %rules.py,$(wildcard tests/integration/test_*.py))

newest: venv ## What meets Ansible, with the newest ansible-core that pip gives, where a Python 3.12 or later is here
	@if [ -z "$(NEWEST)" ]; then echo "newest: not run, there is no Python 3.12 or later here"; exit 0; fi; \
	[ -e .newest/installed ] || { $(NEWEST) -m venv .newest; .newest/bin/pip install --quiet --quiet --editable '.[test]'; touch .newest/installed; }; \
	.newest/bin/pip list 2>/dev/null | grep -i -E '^(ansible-core|mitogen) '; \
	.newest/bin/pytest $(MEETS_ANSIBLE) --numprocesses 4 --dist loadfile

test: ## Tests of the project, and the lives of two clusters, cheap checks first
	@$(call STAGES,lint unit contract cluster)

test-more: ## Tests of single parts and roles, of what a site may add and of day two; CI runs them after test
	@$(call STAGES,newest integration molecule cluster-more molecule-more)

lint: venv ## ruff, mypy, ansible-lint, yamllint, layers, spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/yamllint --strict .
	git ls-files -z | xargs -0 $(BIN)/codespell
	$(BIN)/python -m tests.one_ansible $(BIN)/ansible-lint --offline

# Material's notice that another mkdocs will come is no fault of ours.
docs: export NO_MKDOCS_2_WARNING := 1
docs: venv ## Build the documentation as a site in build/docs; a link or anchor that leads nowhere is an error
	$(BIN)/mkdocs build --clean
	@echo "to read it: $(PYTHON) -m http.server --bind 127.0.0.1 --directory build/docs"

release: venv ## Build wheel and source distribution in dist/ from what is committed, and try them
	$(BIN)/python -m tests.release

unit: venv ## Fast tests without network
	$(BIN)/pytest tests/unit --numprocesses 3 --dist worksteal

contract: venv ## Layers, argument_specs, scenarios, the documentation's links
	$(BIN)/pytest tests/contract --numprocesses 2

prometheus-programs: .venv/prometheus/promtool ## Get promtool and Prometheus from the distribution, without installing them

.venv/prometheus/promtool: | venv
	@place=$$(mktemp -d); trap 'rm -rf "$$place"' EXIT; chmod 0755 "$$place"; cd "$$place"; \
	get="apt-get -o APT::Sandbox::User=root -qq download prometheus"; \
	$$get || { $(SUDO) apt-get update -qq; $$get; }; \
	dpkg-deb --extract prometheus_*.deb unpacked; \
	mkdir -p $(CURDIR)/$(@D); cp unpacked/usr/bin/prometheus unpacked/usr/bin/promtool $(CURDIR)/$(@D)/

integration: venv prometheus-programs ## Real ansible-runner and Prometheus on this machine
	$(BIN)/pytest tests/integration --numprocesses 4 --dist loadfile

molecule: venv system ## Roles of every cluster, each in containers; OPTIONS=--every-release for all on both Debian releases
	$(BIN)/python molecule/run.py --roles plain $(OPTIONS)

molecule-more: venv system ## Roles that a site may add
	$(BIN)/python molecule/run.py --roles added $(OPTIONS)

browser: ## Install Chromium, in which a test opens the pages of Prometheus
	@command -v chromium >/dev/null || { \
	  echo "installing for a test: chromium"; \
	  $(SUDO) apt-get update -qq; \
	  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq --no-install-recommends chromium >/dev/null; \
	}

# What systemd in so many machines watches takes more than the kernel's 128 inotify instances; with those, two fit.
# Where ONCE_MORE is set, as in CI, a few tests or scenarios that failed are run again on fresh machines, and those that pass then are called flaky.
CLUSTERS = workers=3; limit=fs.inotify.max_user_instances; \
	[ $$(sysctl --values $$limit) -ge 1024 ] || $(SUDO) sysctl --quiet --write $$limit=1024 || workers=2; \
	clusters() { $(BIN)/pytest tests/cluster --numprocesses $$workers --durations 20 -m "$(1)" "$$@" $(OPTIONS); }; \
	clusters || { [ -n "$${ONCE_MORE:-}" ] && clusters --once-more; }

# One release of the lab for the lives of clusters, where it is said; else both of Debian's.
export DEPLOY_RELEASE := $(if $(filter file,$(origin RELEASE)),,$(RELEASE))

cluster: venv system ## Two clusters' lives, both Debian releases; OPTIONS=--every-release for every test on both, RELEASE=noble for another
	@$(call CLUSTERS,not more)

cluster-more: venv system browser ## Clusters with what a site may add, and day two
	@$(call CLUSTERS,more and not long)

servers: venv system ## Clusters with several controllers and a database on three hosts: upgrade, members, new machines; not in CI
	@$(call CLUSTERS,long)

upgrade-long: venv system ## The cluster test of an upgrade with 4 nodes, 40 jobs, 200 tasks and 10 kills
	DEPLOY_UPGRADE_NODES=4 DEPLOY_UPGRADE_JOBS=10 DEPLOY_UPGRADE_ARRAY=200 DEPLOY_UPGRADE_KILLS=10 \
	  $(BIN)/pytest tests/cluster/test_upgrade.py $(OPTIONS)

update-long: venv system ## The cluster test of an update with 4 nodes
	DEPLOY_CLUSTER_NODES=4 $(BIN)/pytest tests/cluster/test_update.py $(OPTIONS)

reliability: venv system ## Faults under load and what they cost; OPTIONS='--short', '--times 1 --only leader-off'
	$(BIN)/python -m tests.reliability $(OPTIONS)

kills: venv system ## deploy itself killed at random moments, and the next run; OPTIONS='--kills 100', '--only change --seed 7'
	$(BIN)/python -m tests.kills $(OPTIONS)

power: venv system ## Power lost and back on kernels of their own; OPTIONS='--rounds 20 --seed 7', '--only node'
	$(BIN)/python -m tests.power $(OPTIONS)

clients: venv system ## What users submit with (submitit, dask-jobqueue, Snakemake, ReFrame, parsl), installed and run in a lab by a user
	$(BIN)/pytest tests/clients $(OPTIONS)

slurm-testsuite: venv system ## Slurm's own test suite from Debian's source package, in a lab; OPTIONS='--part python --lab NAME'
	$(BIN)/python -m tests.slurm_testsuite $(OPTIONS)

bench: venv system .venv/pyinfra/bin/pyinfra ## Benchmarks, as ratios side by side; OPTIONS='--nodes 10 --rounds 1'
	$(BIN)/python -m tests.bench $(OPTIONS)

.venv/pyinfra/bin/pyinfra: tests/bench/pyinfra.lock | venv
	$(PYTHON) -m venv .venv/pyinfra
	.venv/pyinfra/bin/python -m pip install --quiet --requirement tests/bench/pyinfra.lock

clean-labs: ## Remove what interrupted tests left: labs named test-, bench- or demo, Molecule's machines
	@command -v podman >/dev/null || exit 0; \
	for network in $$(podman network ls --filter label=deploy.lab --format '{{.Name}}'); do \
	  lab=$${network#deploy-}; case $$lab in test-*|bench-*|demo) $(BIN)/deploy lab down --name $$lab --delete-dir;; esac; \
	done; \
	podman ps --all --quiet --filter name=^molecule- | xargs --no-run-if-empty podman rm --force --time 0 >/dev/null; \
	podman network ls --quiet --filter name=^molecule- | xargs --no-run-if-empty podman network rm >/dev/null

clean: ## Remove what this Makefile made
	rm -rf .venv .newest dist build
