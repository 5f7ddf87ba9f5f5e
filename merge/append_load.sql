-- What a merged trace tells of a job when late ranks are added, in the order of merge/append_load.c:
-- everything that matching and alignment need, and of events only the communication operations.
SELECT key, value FROM meta;
SELECT id, value FROM string ORDER BY id;
SELECT id, grid_x, grid_y, grid_z, block_x, block_y, block_z, static_smem_bytes, dynamic_smem_bytes, registers
FROM launch_config ORDER BY id;
SELECT name_id FROM kernel_name;
SELECT id, name, boot_id FROM host ORDER BY id;
SELECT id, path FROM source ORDER BY id;
SELECT id, source_id, host_id, rank, world_size, local_rank, pid, restart, first_ns, last_ns, clean_exit
FROM process ORDER BY id;
SELECT rank, process_id, device FROM rank WHERE process_id IS NOT NULL ORDER BY rank;
SELECT id, hash, nccl_hash, n_ranks, parent_id, name, description FROM communicator ORDER BY id;
SELECT comm_id, comm_rank, rank, recorded FROM comm_member ORDER BY comm_id, comm_rank;
SELECT id, comm_id, func, seq, src, dst, bytes, datatype, n_members, n_recorded, flags FROM instance ORDER BY id;
SELECT id, rank, comm_id, group_id, n_ops, stream, start_ns, end_ns FROM nccl_launch ORDER BY id;
SELECT rank, comm_id, func, seq, peer, count, datatype, redop, enter_ns, leave_ns, group_id, launch_id,
       instance_id, sources, result
FROM nccl_op ORDER BY id;
SELECT host_id, device_rank, from_ns, ref_ns, offset_ns, drift_ppm, uncertainty_ns, bound_lo_ns, bound_hi_ns,
       n_observations, own_ns, basis
FROM clock_map ORDER BY host_id, device_rank IS NOT NULL, device_rank, from_ns;
SELECT id, severity, kind FROM finding;
-- Last ids of the tables that are not read: gpu_event, api_call, gpu_sync, nvtx_range, nccl_launch, nccl_op,
-- quarantine, pyramid_lane, finding; quarantined events.
SELECT (SELECT coalesce(max(id), 0) FROM gpu_event), (SELECT coalesce(max(id), 0) FROM api_call),
       (SELECT coalesce(max(id), 0) FROM gpu_sync), (SELECT coalesce(max(id), 0) FROM nvtx_range),
       (SELECT coalesce(max(id), 0) FROM nccl_launch), (SELECT coalesce(max(id), 0) FROM nccl_op),
       (SELECT coalesce(max(id), 0) FROM quarantine), (SELECT coalesce(max(id), 0) FROM pyramid_lane),
       (SELECT coalesce(max(id), 0) FROM finding), (SELECT count(*) FROM quarantine);
