SELECT id, rank, kind, device, context, stream, start_ns, end_ns, name_id, correlation, api_id, config_id,
       bytes, copy_kind, launch_id, flags
FROM gpu_event ORDER BY id;
