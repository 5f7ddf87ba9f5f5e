SELECT o.rank, o.comm_id, o.func, o.seq, o.peer, o.enter_ns, s.state, s.timeout_ns, s.sizes
FROM op_seen AS s JOIN nccl_op AS o ON o.id = s.op_id ORDER BY s.op_id;
