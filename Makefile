# Two commands do everything: `make demo` and `make test`. Both set up what they need, without root.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INTEROP_PIP := .venv-interop/bin/python -m pip --disable-pip-version-check --quiet
INTEROP04_PIP := .venv-interop04/bin/python -m pip --disable-pip-version-check --quiet
FASTMCP_PIP := .venv-fastmcp/bin/python -m pip --disable-pip-version-check --quiet
READERS_PIP := .venv-readers/bin/python -m pip --disable-pip-version-check --quiet
MARKITDOWN_PIP := .venv-markitdown/bin/python -m pip --disable-pip-version-check --quiet
DOCS_PIP := .venv-docs/bin/python -m pip --disable-pip-version-check --quiet
HOSTS_PIP := .venv-hosts/bin/python -m pip --disable-pip-version-check --quiet
MCP1_PIP := .venv-mcp1/bin/python -m pip --disable-pip-version-check --quiet
TESTS ?= tests
DIST := dist
# Tests start hundreds of processes and import hundreds of files in each worker: none of that is compiled every time.
unexport PYTHONDONTWRITEBYTECODE
# What the tests need beside .venv.
BESIDE := .venv-interop/.ready .venv-interop04/.ready .venv-mcp1/.ready .venv-hosts/.ready .node-inspector/.ready .node-hosts/.ready .node-conformance/.ready .node-oidc/.ready .node-pyright/.ready .node/.ready

.PHONY: bench-hosts help demo test test-all test-hard lint check format docs schema screenshots dist hooks bench bench-docs races chaos fuzz clean

help:
	@echo "make demo    the whole system on this machine, as a guided tour"
	@echo "make test    format check, lint, types and every test"
	@echo "make test-all  the same with every Python from 3.11 to 3.14 that is found"
	@echo "make test-hard  every test three times, in other orders, beside two busy processes"
	@echo "make check   format check, lint and types only"
	@echo "make format  rewrite the files as the format check wants them"
	@echo "make docs    the guides and the API reference, as pages in site/"
	@echo "make schema  the JSON Schema of config files, from their models"
	@echo "make screenshots  the pictures of docs/console.md"
	@echo "make dist    the source archive and the wheel of a release, in dist/"
	@echo "make hooks   have git run make check before every commit"
	@echo "make bench   side by side with the existing implementation"
	@echo "make bench-hosts  a call by an MCP host, beside our agent, the kit and FastMCP's proxy"
	@echo "make bench-docs  collect foreign documents, and measure how much of them is read"
	@echo "make races   two people, two tabs and a rules file, a thousand times"
	@echo "make chaos   eight minutes of kills, cuts, pauses and restarts; SEED= picks others"
	@echo "make fuzz    twenty thousand hostile frames, 7,500 conversations over HTTP; SEED= picks others"
	@echo "make clean   forget the virtual environments and the built pages"

# A stamp in each environment: a second run does not install again.
$(VENV)/.runtime: pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (once) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "a2c-office needs Python 3.11 or newer; set PYTHON=")'
	@$(PYTHON) -m venv $(VENV)
	@# Earlier commits installed themselves under the name of the existing implementation.
	@$(PIP) --quiet uninstall --yes a2c-smcp
	@$(PIP) install -c constraints.txt hatchling editables setuptools wheel
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[all]'
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "Adding the development tools (once) ..."
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

# The existing implementation has the same import name, so it lives in an environment of its own.
.venv-interop/.ready: constraints-interop.txt
	@echo "Setting up .venv-interop (once) ..."
	@$(PYTHON) -m venv .venv-interop
	@$(INTEROP_PIP) install -c constraints-interop.txt 'a2c-smcp[cli]' requests websocket-client 'uvicorn[standard]'
	@touch $@

# Its release 0.4.2, which speaks another dialect of the protocol and needs other versions of almost everything.
.venv-interop04/.ready: constraints-interop04.txt
	@echo "Setting up .venv-interop04 (once) ..."
	@$(PYTHON) -m venv .venv-interop04
	@$(INTEROP04_PIP) install -c constraints-interop04.txt 'a2c-smcp[cli]' requests websocket-client 'uvicorn[standard]'
	@touch $@

# Clients of mcp 1.x, which cannot share an environment with mcp 2; LangChain's adapters are such clients.
.venv-mcp1/.ready: constraints-mcp1.txt
	@echo "Setting up .venv-mcp1 (once) ..."
	@$(PYTHON) -m venv .venv-mcp1
	@$(MCP1_PIP) install -c constraints-mcp1.txt mcp langchain-mcp-adapters
	@touch $@

# MCP hosts that are libraries, for the tests of `a2c mcp`.
.venv-hosts/.ready: constraints-hosts.txt
	@echo "Setting up .venv-hosts (once) ..."
	@$(PYTHON) -m venv .venv-hosts
	@$(HOSTS_PIP) install -c constraints-hosts.txt openai-agents 'pydantic-ai-slim[mcp]'
	@touch $@

# MCP's inspector, which needs Node.js. Version 2 of it needs a Node.js newer than many systems have.
.node-inspector/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-inspector (once) ..."; \
	  npm install --prefix .node-inspector --silent --no-audit --no-fund --ignore-scripts \
	    @modelcontextprotocol/inspector-cli@1.0.3 </dev/null && touch $@; \
	else \
	  echo "MCP's inspector is not tested: install Node.js with npm, and type make test again"; \
	fi

# MCP's conformance suite, of both eras. It needs Node.js 22, which comes as a package.
.node-conformance/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-conformance (once) ..."; \
	  npm install --prefix .node-conformance --silent --no-audit --no-fund --ignore-scripts node@22.23.3 \
	    @modelcontextprotocol/conformance@0.1.16 \
	    conformance-2026@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12 </dev/null && \
	  (cd .node-conformance/node_modules/node && node installArchSpecificPackage.js </dev/null >/dev/null 2>&1) && touch $@; \
	else \
	  echo "MCP's conformance suite is not run: install Node.js with npm, and type make test again"; \
	fi

# An issuer of tokens, for the tests of signing in. It needs Node.js 22, which comes as a package.
.node-oidc/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-oidc (once) ..."; \
	  npm install --prefix .node-oidc --silent --no-audit --no-fund --ignore-scripts node@22.23.3 \
	    oidc-provider@9.13.3 </dev/null && \
	  (cd .node-oidc/node_modules/node && node installArchSpecificPackage.js </dev/null >/dev/null 2>&1) && touch $@; \
	else \
	  echo "Signing in is not tested: install Node.js with npm, and type make test again"; \
	fi

# The TypeScript SDK, and a host on the command line. Both need Node.js.
.node-hosts/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-hosts (once) ..."; \
	  npm install --prefix .node-hosts --silent --no-audit --no-fund --ignore-scripts --omit=optional \
	    @modelcontextprotocol/sdk@1.32.2 @google/gemini-cli@0.61.0 </dev/null && touch $@; \
	else \
	  echo "The TypeScript SDK and Gemini CLI are not tested: install Node.js with npm, and type make test again"; \
	fi

# Another type checker: the one in many editors. It needs Node.js.
.node-pyright/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-pyright (once) ..."; \
	  npm install --prefix .node-pyright --silent --no-audit --no-fund --ignore-scripts pyright@1.1.414 </dev/null && touch $@; \
	else \
	  echo "The types are not checked with pyright: install Node.js with npm, and type make test again"; \
	fi

# What people turn whole files into text with today, for the benchmark only.
.venv-markitdown/.ready: constraints-markitdown.txt
	@echo "Setting up .venv-markitdown (once) ..."
	@$(PYTHON) -m venv .venv-markitdown
	@$(MARKITDOWN_PIP) install -c constraints-markitdown.txt 'markitdown[pdf,xlsx]'
	@touch $@

# MCP servers for terminals and browsers that an agent polls, for the benchmark only. Without npm the benchmark leaves them out.
.node-windows/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-windows (once) ..."; \
	  npm install --prefix .node-windows --silent --no-audit --no-fund --ignore-scripts \
	    @mako10k/mcp-shell-server@2.7.1 @playwright/mcp@0.0.83 </dev/null && \
	  npm_config_nodedir=$$(dirname $$(dirname $$(readlink -f $$(command -v node)))) \
	    npm rebuild --prefix .node-windows --silent node-pty </dev/null >/dev/null 2>&1; touch $@; \
	else \
	  echo "Windows are not measured beside servers that are polled: install Node.js with npm, and type make bench again"; \
	fi

# Another proxy of MCP servers, for the benchmark only.
.venv-fastmcp/.ready: constraints-fastmcp.txt
	@echo "Setting up .venv-fastmcp (once) ..."
	@$(PYTHON) -m venv .venv-fastmcp
	@$(FASTMCP_PIP) install -c constraints-fastmcp.txt 'fastmcp-slim[server]'
	@touch $@

# Other readers of documents, for `make bench-docs` only.
.venv-readers/.ready: constraints-readers.txt
	@echo "Setting up .venv-readers (once) ..."
	@$(PYTHON) -m venv .venv-readers
	@$(READERS_PIP) install -c constraints-readers.txt 'markitdown[docx,pptx,xlsx,xls,pdf]' pdfplumber pypdf pymupdf \
	  docx2python docx2txt mammoth python-pptx openpyxl python-calamine xlrd pyxlsb lxml html2text odfpy
	@touch $@

# A browser for the console's tests, in a folder of this clone. Without one, and without npm, a line says what to install.
.node/.ready: tests/browser.py
	@echo "Looking for a browser (once) ..."
	@$(PYTHON) -m tests.browser

demo: $(VENV)/.runtime
	@$(BIN)/a2c demo

lint: $(VENV)/.dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .

check: lint
	@$(BIN)/mypy

format: $(VENV)/.dev
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

# The pages need three packages. The development tools have them too, but take minutes to install.
DOCS := $(if $(wildcard .venv/.dev),.venv,.venv-docs)

.venv-docs/.ready: constraints.txt
	@echo "Setting up .venv-docs (once) ..."
	@$(PYTHON) -m venv .venv-docs
	@$(DOCS_PIP) install -c constraints.txt griffelib mkdocs mkdocstrings mkdocstrings-python
	@touch $@

docs: $(if $(wildcard .venv/.dev),.venv/.dev,.venv-docs/.ready)
	@$(DOCS)/bin/mkdocs build --quiet --strict
	@echo "site/index.html is the first page."

schema: $(VENV)/.runtime
	@$(BIN)/python -m a2c_smcp.computer.config.schema

screenshots: $(VENV)/.dev .node/.ready
	@$(BIN)/python -m tests.computer.console.screenshots docs/console

# The wheel is made from the source archive, as pip does it: what one lacks, the other cannot have.
dist: $(VENV)/.dev
	@rm -f $(DIST)/a2c_office-*
	@$(BIN)/python -m hatchling build --target sdist --directory $(DIST)
	@$(PIP) wheel --no-deps --no-index --no-build-isolation --wheel-dir $(DIST) $(DIST)/a2c_office-*.tar.gz

hooks:
	@git config core.hooksPath hooks
	@echo "git runs make check before every commit; git commit --no-verify leaves it out."

# More workers than most machines have cores: many tests wait. The order of the files is that of tests/conftest.py.
# Every worker imports every test: they are compiled once, while the types are checked, and not by each worker.
test: lint $(BESIDE)
	@$(BIN)/pytest --collect-only --quiet $(TESTS) >/dev/null 2>&1 & $(BIN)/mypy; typed=$$?; wait; exit $$typed
	@$(BIN)/pytest -n 8 --dist loadfile --no-loadscope-reorder $(TESTS)

# `make test` with every Python from 3.11 to 3.14 that is found here, each with an environment of its own.
test-all:
	@$(PYTHON) -m tests.interpreters $(TESTS)

# Tests that pass on an idle machine only, or after another test only. `TESTS=tests/agent` runs a part.
test-hard: $(VENV)/.dev $(BESIDE)
	@$(BIN)/python -m tests.hard $(TESTS)

bench: $(VENV)/.dev .venv-interop/.ready .venv-markitdown/.ready .venv-fastmcp/.ready .node-windows/.ready
	@$(BIN)/python -m bench --document docs/benchmarks.md

# Only a host's call through `a2c mcp`, beside FastMCP's proxy: a minute.
bench-hosts: $(VENV)/.dev .venv-fastmcp/.ready
	@$(BIN)/python -m bench hosts

# FOLDER= is where the collected files are kept; a second run reads only what has changed.
bench-docs: $(VENV)/.dev .venv-readers/.ready
	@$(BIN)/python -m bench.documents --collect --document docs/benchmarks.md $(FOLDER)

races: $(VENV)/.dev
	@$(BIN)/python -m tests.computer.rules.races 1000

chaos: $(VENV)/.dev
	@$(BIN)/python -m tests.chaos --seconds 300 --seed $(or $(SEED),1)
	@$(BIN)/python -m tests.chaos.rolling --seconds 180 --seed $(or $(SEED),1)

fuzz: $(VENV)/.dev
	@$(BIN)/python -m tests.fuzz --packets 10000 --seed $(or $(SEED),1)

clean:
	rm -rf dist .venv .venv-3.* .venv-interop .venv-interop04 .venv-mcp1 .venv-hosts .node-inspector .node-hosts .node-conformance .node-oidc .node-pyright .venv-markitdown .venv-fastmcp .venv-readers .venv-docs .node site .node-windows
