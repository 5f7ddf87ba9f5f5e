WITH lane AS (SELECT rank, tid, row_number() OVER (PARTITION BY rank ORDER BY min(start_ns), tid) AS lane
              FROM nvtx_range GROUP BY rank, tid)
SELECT r.rank, l.lane, coalesce(n.value, ''), r.start_ns, r.end_ns - r.start_ns, r.kind, r.depth, r.payload, r.flags & 1
FROM nvtx_range AS r
JOIN lane AS l ON l.rank = r.rank AND l.tid = r.tid
LEFT JOIN string AS n ON n.id = r.name_id
ORDER BY r.rank, l.lane, r.start_ns, r.id;
