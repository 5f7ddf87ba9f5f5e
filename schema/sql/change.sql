-- A copy that is renamed when it is whole: nothing to roll back to.
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA cache_size = -65536;
PRAGMA temp_store = FILE;
