-- What building the pages of a table by hand needs to know, in the order of schema/db/page_table.c.

SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?1;

-- Columns: only integers of which the first is the rowid can be written so.
SELECT type = 'INTEGER', pk, "notnull", name FROM pragma_table_xinfo(?1) ORDER BY cid;

-- Indexes; the last column says whether one is more than plain ascending columns.
SELECT m.name, m.rootpage,
       l."unique" OR l.partial OR EXISTS (SELECT 1 FROM pragma_index_xinfo(m.name) AS x WHERE x.desc OR x.cid < 0 AND x.key)
FROM pragma_index_list(?1) AS l JOIN sqlite_master AS m ON m.type = 'index' AND m.name = l.name
ORDER BY m.rootpage;

-- Columns of an index.
SELECT cid FROM pragma_index_info(?1) ORDER BY seqno;
