# make up            the example on an embedded PostgreSQL, until Ctrl-C   (PORT=9000 chooses the console's port)
# make test          all tests, on a PostgreSQL of their own
# make check         format, lint, types, import rules, migrations, the wheel's contents
# make requirements  which requirements no test names yet

.PHONY: up test check requirements

up:
	@.ci/environment run
	@.venv/bin/shiftboss up --settings catalogue.settings --pythonpath examples --first catalogue_scan

test:
	@.ci/environment dev
	@.ci/browser
	.venv/bin/python -m pytest

check:
	@.ci/environment dev
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	.venv/bin/python .ci/wheel.py

requirements:
	@.ci/environment dev
	@.venv/bin/python -m pytest -p tests.requirements --collect-only -qqq
