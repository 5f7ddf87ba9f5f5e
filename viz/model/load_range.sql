SELECT rank, tid, kind, domain_id, category_id, name_id, start_ns, end_ns, depth, flags
FROM nvtx_range ORDER BY id;
