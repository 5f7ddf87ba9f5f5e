SELECT id, rank, comm_id, start_ns, end_ns FROM nccl_launch ORDER BY id;
