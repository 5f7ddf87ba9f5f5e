-- Reading one table: from its beginning, from its end back to what was read, one row by its number.
-- The columns that the table has go in where it says so, and the table's name in its place.
SELECT /*columns*/ rowid FROM /*table*/ sqlite_master WHERE rowid > ?1 ORDER BY rowid;
SELECT /*columns*/ rowid FROM /*table*/ sqlite_master WHERE rowid > ?1 ORDER BY rowid DESC;
SELECT /*columns*/ rowid FROM /*table*/ sqlite_master WHERE rowid = ?1;
