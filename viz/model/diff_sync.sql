SELECT rank, coalesce(stream, -1), 'synchronisation ' || kind, start_ns, end_ns - start_ns, kind
FROM gpu_sync
ORDER BY rank, coalesce(stream, -1), start_ns, id;
