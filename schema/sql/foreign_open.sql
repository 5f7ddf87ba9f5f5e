-- For a database that somebody else has written: lying cells are found when they are read.
PRAGMA cell_size_check = ON;
PRAGMA query_only = ON;
PRAGMA temp_store = MEMORY;
