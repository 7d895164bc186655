# make up            the example on an embedded PostgreSQL, until Ctrl-C   (PORT=9000 chooses the console's port)
# make test          all tests, on a PostgreSQL of their own  (PG_BIN=folder runs that of the system's programs there)
# make check         format, lint, types, import rules, migrations, the wheel's contents
# make bench         drains 200,000 jobs beside PgQueuer  (QBENCH=folder of the harness `qbench`, see bench/)
# make bench-console  how long the console's pages take on ten million jobs  (BENCH="--finished 100000 --live 10000")
# make faults        the tests under fault again and again, shuffled, beside a busy core  (TIMES=20)
# make mutate-sql    leaves out each condition of the store's statements: a test has to miss it  (SQL=cancel for some)
# make check-tests   breaks each guarantee of docs/reliability.md: a test has to miss it  (BREAKS="G4 G7" for some)
# make requirements  which requirements no test names yet

.PHONY: up test check bench bench-console faults mutate-sql check-tests requirements

up:
	@.ci/environment run
	@.venv/bin/shiftboss up --settings catalogue.settings --pythonpath examples --first catalogue_scan

test:
	@.ci/environment dev
	@.ci/browser
	.venv/bin/python -m pytest -n 3

check:
	@.ci/environment dev
	.venv/bin/ruff format --check
	.venv/bin/ruff check
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/python -W ignore::RuntimeWarning manage.py makemigrations --check --dry-run
	.venv/bin/python .ci/wheel.py

bench:
	@test -n "$(QBENCH)" || { echo "Say where the harness is: make bench QBENCH=path/to/bench (see bench/README.md)"; exit 2; }
	@.ci/environment dev
	.venv/bin/python -m pip --disable-pip-version-check install --quiet --requirement bench/requirements.txt
	PYTHONPATH=.:$(QBENCH) .venv/bin/python -m bench.drain $(BENCH)

bench-console:
	@.ci/environment dev
	PYTHONPATH=. .venv/bin/python -m bench.console $(BENCH)

faults:
	@.ci/environment dev
	.venv/bin/python -m tests.faults.again --times $(or $(TIMES),20)

mutate-sql:
	@.ci/environment dev
	.venv/bin/python -m tests.mutate_sql $(SQL)

check-tests:
	@.ci/environment dev
	.venv/bin/python -m tests.breaks $(BREAKS)

requirements:
	@.ci/environment dev
	@.venv/bin/python -m pytest -p tests.requirements --collect-only -qqq
