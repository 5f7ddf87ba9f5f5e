-- Views for people: names instead of ids, microseconds since the trace began instead of epoch ns.

CREATE VIEW v_origin AS
SELECT min(first_ns) AS origin_ns FROM process WHERE rank IS NOT NULL;

CREATE VIEW v_kernels AS
SELECT g.id, g.rank, g.device, g.stream,
       coalesce(s.value, p.value) AS name,
       CASE WHEN g.launch_id IS NOT NULL OR k.class = 1 THEN 'communication' ELSE 'compute' END AS class,
       (g.start_ns - o.origin_ns) / 1000.0 AS start_us,
       (g.end_ns - g.start_ns) / 1000.0 AS duration_us,
       (g.start_ns - a.start_ns) / 1000.0 AS since_launch_us,
       c.grid_x, c.grid_y, c.grid_z, c.block_x, c.block_y, c.block_z,
       f.value AS full_name
FROM gpu_event AS g
CROSS JOIN v_origin AS o
LEFT JOIN kernel_name AS k ON k.name_id = g.name_id
LEFT JOIN string AS s ON s.id = k.short_id
LEFT JOIN string AS f ON f.id = k.full_id
LEFT JOIN string AS p ON p.id = g.name_id
LEFT JOIN api_call AS a ON a.id = g.api_id
LEFT JOIN launch_config AS c ON c.id = g.config_id
WHERE g.kind = 0;

CREATE VIEW v_copies AS
SELECT g.id, g.rank, g.device, g.stream, s.value AS name,
       (g.start_ns - o.origin_ns) / 1000.0 AS start_us,
       (g.end_ns - g.start_ns) / 1000.0 AS duration_us,
       g.bytes,
       CASE WHEN g.end_ns > g.start_ns THEN 1.0 * g.bytes / (g.end_ns - g.start_ns) END AS gb_per_s,
       g.peer_device
FROM gpu_event AS g
CROSS JOIN v_origin AS o
JOIN string AS s ON s.id = g.name_id
WHERE g.kind IN (1, 2);

CREATE VIEW v_calls AS
SELECT a.id, a.rank, a.tid, CASE a.domain WHEN 1 THEN 'driver' ELSE 'runtime' END AS domain,
       s.value AS name,
       (a.start_ns - o.origin_ns) / 1000.0 AS start_us,
       (a.end_ns - a.start_ns) / 1000.0 AS duration_us,
       a.correlation, a.result
FROM api_call AS a
CROSS JOIN v_origin AS o
JOIN string AS s ON s.id = a.name_id;

CREATE VIEW v_ranges AS
SELECT r.id, r.rank, r.tid,
       CASE r.kind WHEN 1 THEN 'push/pop' WHEN 2 THEN 'start/end' WHEN 3 THEN 'mark'
                   WHEN 4 THEN 'operator' ELSE 'gpu' END AS kind,
       d.value AS domain, c.value AS category, n.value AS name, r.depth,
       (r.start_ns - o.origin_ns) / 1000.0 AS start_us,
       (r.end_ns - r.start_ns) / 1000.0 AS duration_us,
       r.flags & 1 AS unclosed
FROM nvtx_range AS r
CROSS JOIN v_origin AS o
JOIN string AS d ON d.id = r.domain_id
JOIN string AS c ON c.id = r.category_id
JOIN string AS n ON n.id = r.name_id;

-- Names of communication functions and element types, as schema/record/enums.h numbers them.
CREATE VIEW v_func AS
SELECT column1 AS func, column2 AS name
FROM (VALUES (0, 'unknown'), (1, 'all_reduce'), (2, 'all_gather'), (3, 'reduce_scatter'),
             (4, 'broadcast'), (5, 'reduce'), (6, 'all_to_all'), (7, 'gather'), (8, 'scatter'),
             (9, 'send'), (10, 'recv'), (11, 'send_recv'), (12, 'barrier'));

CREATE VIEW v_datatype AS
SELECT column1 AS datatype, column2 AS name
FROM (VALUES (0, 'int8'), (1, 'uint8'), (2, 'int32'), (3, 'uint32'), (4, 'int64'), (5, 'uint64'),
             (6, 'float16'), (7, 'float32'), (8, 'float64'), (9, 'bfloat16'), (10, 'float8_e4m3'),
             (11, 'float8_e5m2'));

CREATE VIEW v_communicators AS
SELECT c.id, c.name, c.description, c.n_ranks, c.parent_id,
       (SELECT group_concat(coalesce(rank, '?'), ' ')
        FROM (SELECT rank FROM comm_member WHERE comm_id = c.id ORDER BY comm_rank)) AS ranks,
       (SELECT count(*) FROM comm_member WHERE comm_id = c.id AND recorded = 1) AS n_recorded,
       (SELECT count(*) FROM instance WHERE comm_id = c.id) AS n_instances
FROM communicator AS c;

-- One operation over all its ranks. waited_us: how long the first arriver waited for the last.
CREATE VIEW v_collectives AS
SELECT i.id, i.comm_id, f.name AS func, i.seq, i.src, i.dst, i.bytes, d.name AS datatype,
       i.n_members, i.n_recorded, i.n_started, i.n_finished,
       (i.first_start_ns - o.origin_ns) / 1000.0 AS start_us,
       (i.last_start_ns - i.first_start_ns) / 1000.0 AS waited_us,
       (i.last_end_ns - i.last_start_ns) / 1000.0 AS transfer_us,
       i.last_rank, i.lead_ns / 1000.0 AS lead_us,
       i.flags & 1 AS mismatched, (i.flags >> 1) & 1 AS by_order, (i.flags >> 2) & 1 AS shared
FROM instance AS i
CROSS JOIN v_origin AS o
LEFT JOIN v_func AS f ON f.func = i.func
LEFT JOIN v_datatype AS d ON d.datatype = i.datatype;

-- Operations as called, with what executed them.
CREATE VIEW v_ops AS
SELECT n.id, n.rank, n.comm_id, f.name AS func, n.seq, n.peer, n.count, d.name AS datatype, n.bytes,
       (n.enter_ns - o.origin_ns) / 1000.0 AS called_us,
       (n.leave_ns - n.enter_ns) / 1000.0 AS call_us,
       (l.start_ns - o.origin_ns) / 1000.0 AS start_us,
       (l.end_ns - l.start_ns) / 1000.0 AS duration_us,
       l.n_ops AS ops_in_launch, n.instance_id,
       (i.last_start_ns - l.start_ns) / 1000.0 AS waited_us
FROM nccl_op AS n
CROSS JOIN v_origin AS o
LEFT JOIN v_func AS f ON f.func = n.func
LEFT JOIN v_datatype AS d ON d.datatype = n.datatype
LEFT JOIN nccl_launch AS l ON l.id = n.launch_id
LEFT JOIN instance AS i ON i.id = n.instance_id;

CREATE VIEW v_clock AS
SELECT h.name AS host, m.device_rank, m.from_ns, m.offset_ns / 1000.0 AS offset_us, m.drift_ppm,
       m.uncertainty_ns / 1000.0 AS uncertainty_us,
       m.bound_lo_ns / 1000.0 AS bound_lo_us, m.bound_hi_ns / 1000.0 AS bound_hi_us,
       m.method, m.n_observations, m.own_ns / 1000.0 AS own_us, m.basis
FROM clock_map AS m
JOIN host AS h ON h.id = m.host_id;

CREATE VIEW v_ranks AS
SELECT r.rank, h.name AS host, r.device, d.name AS device_name, p.pid, s.path, s.status,
       (SELECT count(*) FROM gpu_event WHERE rank = r.rank) AS n_gpu_events,
       (p.last_ns - p.first_ns) / 1e9 AS recorded_s, p.clean_exit
FROM rank AS r
LEFT JOIN process AS p ON p.id = r.process_id
LEFT JOIN host AS h ON h.id = r.host_id
LEFT JOIN device AS d ON d.rank = r.rank AND d.device = r.device
LEFT JOIN source AS s ON s.id = p.source_id;

CREATE VIEW v_findings AS
SELECT CASE severity WHEN 0 THEN 'note' WHEN 1 THEN 'warning' ELSE 'error' END AS severity,
       kind, rank, comm_id, seq, count, text
FROM finding
ORDER BY finding.severity DESC, finding.id;
