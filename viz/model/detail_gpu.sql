SELECT start_ns, end_ns, kind, device, context, stream, name_id, correlation, bytes, copy_kind, launch_id, flags
FROM gpu_event
WHERE rank = ? AND start_ns >= ? AND start_ns < ?
ORDER BY start_ns;
