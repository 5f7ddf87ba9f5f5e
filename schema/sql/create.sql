-- One bulk load into a temporary file that is renamed when it is whole: nothing to roll back to.
PRAGMA page_size = 16384;
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA cache_size = -65536;
-- Sorting an index may not fit into memory.
PRAGMA temp_store = FILE;
PRAGMA application_id = 1281451847;
PRAGMA user_version = 2;
