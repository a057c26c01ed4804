setup: ; python3 -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/pre-commit install
test:  ; .venv/bin/pytest -q -n auto --dist worksteal
check: ; .venv/bin/ruff check . && .venv/bin/ruff format --check . && .venv/bin/mypy && .venv/bin/typos
ci:    ; .ci/run
.PHONY: setup test check ci
