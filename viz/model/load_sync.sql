SELECT rank, kind, start_ns, end_ns, context, stream, event_id, sync_id, correlation, record_correlation
FROM gpu_sync ORDER BY id;
