-- Generated columns are not listed: what computes is not read. The last is true of the row number's name.
SELECT name, pk = 1 AND upper(type) = 'INTEGER' FROM pragma_table_info(?1);
