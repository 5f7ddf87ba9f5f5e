-- The transaction ends when indexes and views are there too.
COMMIT;
