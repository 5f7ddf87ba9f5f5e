-- Where to begin to find what still runs at a moment.
SELECT min(start_ns)
FROM (SELECT start_ns FROM gpu_event WHERE rank = ? AND start_ns < ? ORDER BY start_ns DESC LIMIT 256);
