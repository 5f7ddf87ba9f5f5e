-- Real tables only: a view has no root page, and neither has a virtual table.
SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0;
