-- What laggard info prints, one statement a section, in the order of cli/cmd_info.c.

SELECT (SELECT value FROM meta WHERE key = 'laggard_version') AS laggard_version,
       (SELECT count(*) FROM rank WHERE process_id IS NOT NULL) AS ranks_recorded,
       (SELECT count(*) FROM rank) AS world_size,
       (SELECT count(DISTINCT host_id) FROM rank) AS hosts,
       (SELECT max(last_ns) - min(first_ns) FROM process WHERE rank IS NOT NULL) AS recorded_ns,
       (SELECT value FROM meta WHERE key = 'clock_method') AS clock_method,
       (SELECT CASE WHEN (SELECT count(*) FROM rank WHERE process_id IS NOT NULL) > 1
                    THEN max(uncertainty_ns) END FROM clock_map) AS clock_uncertainty_ns,
       (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'clock_violations') AS clock_violations,
       (SELECT count(*) FROM quarantine) AS quarantined_events,
       (SELECT coalesce(sum(count), 0) FROM loss) AS lost_records;

SELECT 'kernels' AS what, count(*) AS events, count(DISTINCT rank) AS ranks FROM gpu_event WHERE kind = 0
UNION ALL
SELECT 'copies', count(*), count(DISTINCT rank) FROM gpu_event WHERE kind = 1
UNION ALL
SELECT 'sets', count(*), count(DISTINCT rank) FROM gpu_event WHERE kind = 2
UNION ALL
SELECT 'host calls', count(*), count(DISTINCT rank) FROM api_call
UNION ALL
SELECT 'synchronisations', count(*), count(DISTINCT rank) FROM gpu_sync
UNION ALL
SELECT 'annotations', count(*), count(DISTINCT rank) FROM nvtx_range
UNION ALL
SELECT 'communication calls', count(*), count(DISTINCT rank) FROM nccl_op
UNION ALL
SELECT 'matched operations', count(*), NULL FROM instance WHERE n_recorded > 1;

SELECT count(*) AS lanes, sum(device IS NULL) AS ranks,
       sum(CASE WHEN device IS NULL THEN n_events END) AS events,
       1 << min(shift) AS finest_ns, 1 << max(top_shift) AS coarsest_ns,
       (SELECT sum(length(buckets)) FROM pyramid) AS bytes,
       CAST((SELECT sum(length(buckets)) FROM pyramid) AS REAL) /
         sum(CASE WHEN device IS NULL THEN n_events END) AS bytes_an_event
FROM pyramid_lane HAVING count(*) > 0;

SELECT r.rank, h.name AS host, r.device, d.name AS device_name, p.pid, g.n AS gpu_events,
       p.last_ns - p.first_ns AS recorded_ns,
       CASE WHEN r.process_id IS NULL THEN 'not recorded' WHEN p.clean_exit = 0 THEN 'cut off'
            WHEN p.clean_exit = 1 THEN 'orderly' END AS end,
       l.n AS lost_records
FROM rank AS r
LEFT JOIN process AS p ON p.id = r.process_id
LEFT JOIN host AS h ON h.id = r.host_id
LEFT JOIN device AS d ON d.rank = r.rank AND d.device = r.device
LEFT JOIN (SELECT rank, count(*) AS n FROM gpu_event GROUP BY rank) AS g ON g.rank = r.rank
LEFT JOIN (SELECT process_id, sum(count) AS n FROM loss GROUP BY process_id) AS l
  ON l.process_id = r.process_id
ORDER BY r.rank;

SELECT c.id, c.name, c.description, c.n_ranks AS members,
       (SELECT count(*) FROM comm_member WHERE comm_id = c.id AND recorded = 1) AS recorded,
       i.n AS operations, i.partial AS not_on_all_members
FROM communicator AS c
LEFT JOIN (SELECT comm_id, count(*) AS n, sum(n_recorded < n_members) AS partial
           FROM instance GROUP BY comm_id) AS i ON i.comm_id = c.id
ORDER BY c.id;

SELECT h.name AS host, m.offset_ns, m.drift_ppm, m.uncertainty_ns, m.bound_lo_ns, m.bound_hi_ns,
       m.n_observations AS observations, m.basis
FROM clock_map AS m JOIN host AS h ON h.id = m.host_id
WHERE m.device_rank IS NULL
ORDER BY m.host_id, m.from_ns;

SELECT m.key, m.value, count(DISTINCT m.process_id) AS processes
FROM process_meta AS m
GROUP BY m.key, m.value
ORDER BY m.key, m.value;

SELECT s.path, s.format, s.status, s.n_records AS records, s.n_bad AS bad, p.rank, p.pid,
       h.name AS host, s.note
FROM source AS s
LEFT JOIN process AS p ON p.source_id = s.id
LEFT JOIN host AS h ON h.id = p.host_id
ORDER BY s.id;

SELECT s.path, s.format,
       group_concat(CASE WHEN f.key LIKE 'records: %' THEN f.value || ' ' || substr(f.key, 10) END, ', ') AS records,
       max(CASE WHEN f.key = 'last_ns' THEN CAST(f.value AS INTEGER) END)
         - max(CASE WHEN f.key = 'first_ns' THEN CAST(f.value AS INTEGER) END) AS covers_ns,
       group_concat(CASE WHEN f.key LIKE 'lost: %' THEN f.value || ' ' || substr(f.key, 7) END, ', ') AS lost,
       max(CASE WHEN f.key = 'put aside' THEN CAST(f.value AS INTEGER) END) AS put_aside,
       sum(f.key = 'note') AS notes,
       max(CASE WHEN f.key = 'clock' THEN f.value END) AS clock,
       group_concat(CASE WHEN f.key = 'not recorded' THEN f.value END, ', ') AS not_recorded
FROM source AS s
JOIN (SELECT * FROM source_fact ORDER BY key NOT LIKE 'records: %', CAST(value AS INTEGER) DESC) AS f
  ON f.source_id = s.id
GROUP BY s.id
ORDER BY s.id;

SELECT p.rank, l.kind, l.reason, sum(l.count) AS records
FROM loss AS l JOIN process AS p ON p.id = l.process_id
GROUP BY p.rank, l.kind, l.reason
ORDER BY p.rank;

SELECT p.rank, g.what, g.reason, g.until_ns - g.from_ns AS gap_ns
FROM gap AS g JOIN process AS p ON p.id = g.process_id
ORDER BY p.rank, g.from_ns;

SELECT rank, record, reason, count(*) AS events FROM quarantine GROUP BY rank, record, reason
ORDER BY events DESC, rank;

SELECT CASE severity WHEN 0 THEN 'note' WHEN 1 THEN 'warning' ELSE 'error' END AS severity,
       kind, rank, comm_id AS communicator, count, text
FROM finding ORDER BY finding.severity DESC, finding.id;
