SELECT id, rank, tid, name_id, start_ns, end_ns, correlation FROM api_call ORDER BY id;
