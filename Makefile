# `make demo` and `make test` do all their set-up themselves, on a Debian machine that has nothing but make.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find routing osm_plugin ibsim_fixtures -name '*.py' -o -name '*.[ch]') setup.py pyproject.toml
PACKAGES := gcc libc6-dev python3 python3-dev python3-venv \
    opensm ibsim-utils infiniband-diags ibutils libopensm-dev libibumad-dev

# Sweeps are tried over MPI too, and valgrind counts the instructions of kernels.
test: PACKAGES += openmpi-bin valgrind

deb: PACKAGES += build-essential chrpath debhelper lintian

.PHONY: help demo test bench asan tsan dist deb site packages install clean

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

demo: install ## a real OpenSM on a simulated fabric: route, prove, pull a link, route, prove
	$(BIN)/ibnue lab --demo

test: packages $(BIN)/tox ## lint, docs, tests on this Python and 3.13, tests with a real OpenSM
	@mkdir -p .tox
	@# The pages and the other Python run beside the tests, because installing and OpenSM leave cores idle.  They yield to
	@# the tests with OpenSM, which have deadlines.
	@# pyenv hides the interpreters that it was not told to show.
	@if command -v pyenv >/dev/null; then \
	    PYENV_VERSION=$$(pyenv versions --bare | grep -E '^3\.1[0-3]\.[0-9]+$$' | sort -rV | paste -sd:); \
	    if [ -n "$$PYENV_VERSION" ]; then export PYENV_VERSION; fi; fi; \
	nice -n 10 $(BIN)/tox run -e docs,py313 </dev/null >.tox/beside.log 2>&1 & beside=$$!; trap "kill $$beside 2>/dev/null || true" EXIT; \
	$(BIN)/tox run -e checks </dev/null 2>&1 | tee .tox/run.log && ok=0 || ok=$$?; \
	wait $$beside || ok=$$?; cat .tox/beside.log; \
	echo; grep -hE '^=+ .*(passed|failed|error|no tests ran).* in ' .tox/run.log .tox/beside.log || true; exit $$ok

bench: packages $(BIN)/tox ## everything that is timed
	$(BIN)/tox run -e bench

asan: packages $(BIN)/tox ## the kernels under AddressSanitizer and UBSan
	$(BIN)/tox run -e asan

tsan: packages $(BIN)/tox ## the kernels' threads under ThreadSanitizer
	$(BIN)/tox run -e tsan

dist: packages $(BIN)/tox ## the sdist and the wheel in dist/, audited
	$(BIN)/tox run -e dist

deb: packages $(BIN)/tox ## the Debian packages of ibnue and of the plugin in dist/
	$(BIN)/tox run -e deb

site: packages $(BIN)/tox ## the documentation as a site in build/site, and man pages in build/man
	$(BIN)/tox run -e site

packages: ## the Debian packages, where they are not there already
	@missing=$$(for p in $(PACKAGES); do \
	    dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done | xargs); \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ]; then become=; \
	elif sudo -n true 2>/dev/null; then become=sudo; \
	else echo "These Debian packages are missing: $$missing" >&2; \
	     echo "Ask root for: apt-get install --no-install-recommends $$missing" >&2; exit 1; fi; \
	echo "installing $$missing"; export DEBIAN_FRONTEND=noninteractive; \
	$$become apt-get -q update; \
	$$become env DEBIAN_FRONTEND=noninteractive apt-get -q -y install --no-install-recommends $$missing

install: packages $(BIN)/ibnue ## the ibnue command, in .venv

$(BIN)/python:
	@# A python3 that comes first on PATH but cannot make environments or compile is passed over.
	@for python in python3 /usr/bin/python3; do \
	    if $$python -c 'import ensurepip, venv, sys, sysconfig, pathlib; \
	        sys.exit(sys.version_info < (3, 10) or \
	        not pathlib.Path(sysconfig.get_path("include"), "Python.h").exists())' 2>/dev/null; \
	    then exec $$python -m venv $(VENV); fi; done; \
	echo "no Python from 3.10 on with venv and headers: apt-get install python3-venv python3-dev" >&2; exit 1

$(BIN)/ibnue: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet .
	@touch $@

$(BIN)/tox: $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile 'tox>=4.11'
	@touch $@

clean: ## everything that was built
	rm -rf $(VENV) .tox build dist *.egg-info routing/_kernels/_native.c routing/_kernels/_native*.so
