SELECT rank, comm_id, func, seq, peer, count, datatype, bytes, enter_ns, leave_ns, launch_id, instance_id,
       sources
FROM nccl_op ORDER BY id;
