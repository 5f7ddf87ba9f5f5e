SELECT name_id, full_id, short_id, class FROM kernel_name;
