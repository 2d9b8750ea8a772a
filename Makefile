# Two commands are all a fresh machine needs: `make demo` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Installed last: the build of torch that fits this machine. CI takes none whose hash is not known.
TORCH ?= -c constraints.txt torch==2.13.0
ifeq ($(CI),true)
TORCH := --no-deps --require-hashes -r torch.lock
endif

.DEFAULT_GOAL := help
.PHONY: help demo picture test check docs notebooks bench format clean lock licences sbom readme

help: ## Show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

$(STAMP): pyproject.toml requirements.lock torch.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up $(VENV) (a few minutes the first time) …"
	@$(BIN)/pip install -q --no-compile --disable-pip-version-check --no-deps --require-hashes -r requirements.lock
	@$(BIN)/pip install -q --disable-pip-version-check $(TORCH)
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP) ## Draw what Deixis sees in an example photo
	@$(BIN)/python examples/demo.py

picture: $(STAMP) ## Renew the output and the picture of the README with the model in the package
	@$(BIN)/python examples/picture.py

test: $(STAMP) ## Run all tests
	$(BIN)/pytest -n 2

check: $(STAMP) ## ruff, ruff format, mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict

docs: $(STAMP) ## Build the documentation as a site in site/, strictly; nothing is loaded from elsewhere
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

notebooks: $(STAMP) ## Run the notebooks of examples/ from their first cell to their last; nothing is written
	$(BIN)/python examples/run_notebooks.py --check

format: $(STAMP) ## Put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## Measure speed, as ratios against yardsticks in the same run (needs an idle machine)
	$(BIN)/python -m benchmarks

lock: $(VENV)/bin/python ## Renew the hashes of what is installed, after constraints.txt has changed
	$(BIN)/python -m supply lock

licences: $(STAMP) ## List the licence of every dependency
	@$(BIN)/python -m supply licences

sbom: $(STAMP) ## Write the bill of materials, sbom.json (CycloneDX)
	$(BIN)/python -m supply sbom -o sbom.json

readme: $(STAMP) ## Follow the README word for word in an empty environment (downloads, takes minutes)
	$(BIN)/pytest -m install

clean: ## Remove the virtual environment and caches of tools
	rm -rf $(VENV) site .pytest_cache .mypy_cache .ruff_cache .hypothesis
