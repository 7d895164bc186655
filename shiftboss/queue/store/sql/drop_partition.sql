-- prune: a day that no table holds any more is gone.
drop table {partition}
