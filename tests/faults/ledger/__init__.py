"""A project with one table of its own, whose handlers complete their jobs in their own transactions."""

TABLE = "create table ledger (number integer not null, job bigint not null, fence integer not null)"
"""Nothing in it keeps an effect from standing there twice."""
