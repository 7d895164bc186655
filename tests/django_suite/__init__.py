"""Django's own tests of its Tasks API, run against our backend. They are fetched, never copied."""
