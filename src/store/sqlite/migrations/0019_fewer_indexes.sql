-- Each index is written with each run. No statement needs these: lists show what is listed, and runs that live are found by the
-- indexes of those that run and those that wait.
DROP INDEX conversations_newest;
DROP INDEX runs_live_of;
