-- Tables, real ones and others: a view has no root page, and neither has a virtual table.
SELECT name, type = 'table' AND rootpage > 0, type = 'view' FROM sqlite_master WHERE type IN ('table', 'view');
