-- A part that is worked at in several statements has a row before its first one, to be locked. By primary key.
insert into shiftboss_sample (part, at, took_ms, seen)
values (%(part)s, 'epoch', 0, '{}')
on conflict (part) do nothing
