"""gunicorn's settings for the console, given as `-c python:shiftboss.supervisor_conf.gunicorn_conf`.

Threads share one pool of connections (`SHIFTBOSS_WEB_POOL`). gunicorn ignores names that it does not know.
"""

import os

worker_class = "gthread"
workers = 1
threads = int(os.environ.get("SHIFTBOSS_WEB_POOL", "8"))
keepalive = 15
graceful_timeout = 10
# Its control socket has one fixed path per user, and two installations would fight for it.
control_socket_disable = True
