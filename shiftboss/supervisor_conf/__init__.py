"""The programs of one host: the embedded database, supervisord's configuration, and the talk with it."""
