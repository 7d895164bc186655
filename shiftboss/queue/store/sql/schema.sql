-- The server's version and the migrations of this app that have been applied.
select current_setting('server_version_num')::integer,
    array(select name::text from django_migrations where app = 'shiftboss' order by id)
