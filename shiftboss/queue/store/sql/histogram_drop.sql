-- histograms.write: spans that are no longer asked for, counted from the newest minute that is written.
-- Index: shiftboss_histogram_at (BRIN).
delete from shiftboss_histogram
where (seconds = 60 and at < %(until)s::timestamptz - interval '4 hours')
    or (seconds = 600 and at < %(until)s::timestamptz - interval '2 days')
    or (seconds = 3600 and at < %(until)s::timestamptz - interval '40 days')
