SELECT id, comm_id, func, seq, src, dst, bytes, n_members, n_recorded, n_started, n_finished,
       first_start_ns, last_start_ns, first_end_ns, last_end_ns, last_rank, lead_ns, flags
FROM instance ORDER BY id;
