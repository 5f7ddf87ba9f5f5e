-- Threads are numbered by their first call: their ids are others in each run.
WITH lane AS (SELECT rank, tid, row_number() OVER (PARTITION BY rank ORDER BY min(start_ns), tid) AS lane
              FROM api_call GROUP BY rank, tid)
SELECT a.rank, l.lane, coalesce(s.value, ''), a.start_ns, a.end_ns - a.start_ns, a.domain, a.result
FROM api_call AS a
JOIN lane AS l ON l.rank = a.rank AND l.tid = a.tid
LEFT JOIN string AS s ON s.id = a.name_id
ORDER BY a.rank, l.lane, a.start_ns, a.id;
