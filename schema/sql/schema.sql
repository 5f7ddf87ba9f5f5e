-- The merged trace. man/laggard-schema.5 documents every table. Times are int64 ns since the Unix
-- epoch: *_ns corrected to the reference host's clock, raw_*_ns as recorded. NULL is "not recorded".
-- Tables marked EVENT hold INTEGER columns only; names are string ids.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE string (id INTEGER PRIMARY KEY, value TEXT NOT NULL);

-- Kernel names: as recorded (usually mangled), demangled, and short (no arguments, no templates).
CREATE TABLE kernel_name (
  name_id INTEGER PRIMARY KEY,
  full_id INTEGER NOT NULL,
  short_id INTEGER NOT NULL,
  class INTEGER NOT NULL            -- 0 compute, 1 communication (by name)
);

CREATE TABLE host (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  boot_id TEXT
);

-- One input file (or archive member).
CREATE TABLE source (
  id INTEGER PRIMARY KEY,
  path TEXT NOT NULL,
  format TEXT NOT NULL,
  status TEXT NOT NULL,             -- ok, damaged, empty, duplicate, refused
  note TEXT NOT NULL,
  n_records INTEGER NOT NULL,
  n_bad INTEGER NOT NULL
);

-- What each source recorded, of what time, by which clock, and what it cannot tell: its receipt.
CREATE TABLE source_fact (source_id INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL);

CREATE TABLE process (
  id INTEGER PRIMARY KEY,
  source_id INTEGER NOT NULL REFERENCES source(id),
  host_id INTEGER NOT NULL REFERENCES host(id),
  rank INTEGER,
  world_size INTEGER,
  local_rank INTEGER,
  pid INTEGER,
  restart INTEGER,
  start_ns INTEGER,
  first_ns INTEGER,                 -- corrected time of the first and last event recorded
  last_ns INTEGER,
  argv TEXT,
  rank_source TEXT,
  clean_exit INTEGER                -- NULL unknown, 0 cut off, 1 orderly
);

CREATE TABLE process_meta (process_id INTEGER NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL);

-- Ranks of the job, recorded or not (process_id NULL: no trace of it).
CREATE TABLE rank (
  rank INTEGER PRIMARY KEY,
  process_id INTEGER REFERENCES process(id),
  host_id INTEGER REFERENCES host(id),
  device INTEGER                    -- the device with most events
);

CREATE TABLE device (
  rank INTEGER NOT NULL,
  device INTEGER NOT NULL,
  uuid TEXT,
  name TEXT,
  cc_major INTEGER,
  cc_minor INTEGER,
  sm_count INTEGER,
  memory_bytes INTEGER,
  PRIMARY KEY (rank, device)
) WITHOUT ROWID;

CREATE TABLE thread (rank INTEGER NOT NULL, tid INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (rank, tid)) WITHOUT ROWID;

CREATE TABLE launch_config (
  id INTEGER PRIMARY KEY,
  grid_x INTEGER, grid_y INTEGER, grid_z INTEGER,
  block_x INTEGER, block_y INTEGER, block_z INTEGER,
  static_smem_bytes INTEGER, dynamic_smem_bytes INTEGER, registers INTEGER
);

-- EVENT: kernels, copies and sets on the GPU. end_ns NULL: still running when recording ended.
CREATE TABLE gpu_event (
  id INTEGER PRIMARY KEY,           -- ascending by (rank, start_ns); added ranks last
  rank INTEGER NOT NULL,
  kind INTEGER NOT NULL,            -- 0 kernel, 1 copy, 2 set
  device INTEGER NOT NULL,
  context INTEGER,
  stream INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,
  end_ns INTEGER,
  raw_start_ns INTEGER NOT NULL,
  raw_end_ns INTEGER,
  name_id INTEGER NOT NULL,         -- kernel_name; for copies and sets a string such as "copy HtoD"
  correlation INTEGER,
  api_id INTEGER,                   -- api_call that launched it
  config_id INTEGER,
  bytes INTEGER,
  copy_kind INTEGER,
  peer_device INTEGER,
  graph_id INTEGER,
  graph_node_id INTEGER,
  launch_id INTEGER,                -- nccl_launch it executes, when it is communication
  flags INTEGER NOT NULL            -- bit 0: launched before recording began or launch unknown
);

-- EVENT: host calls.
CREATE TABLE api_call (
  id INTEGER PRIMARY KEY,
  rank INTEGER NOT NULL,
  tid INTEGER NOT NULL,
  domain INTEGER NOT NULL,          -- 1 driver, 2 runtime
  name_id INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,
  end_ns INTEGER,
  raw_start_ns INTEGER NOT NULL,
  raw_end_ns INTEGER,
  correlation INTEGER,
  result INTEGER
);

-- EVENT: event records, stream waits, host synchronisation (kind: 1 event record, 2 stream waits for
-- event, 3 host waits for event, 4 host waits for stream, 5 host waits for device).
CREATE TABLE gpu_sync (
  id INTEGER PRIMARY KEY,
  rank INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,
  end_ns INTEGER,
  raw_start_ns INTEGER NOT NULL,
  raw_end_ns INTEGER,
  context INTEGER,
  stream INTEGER,
  event_id INTEGER,
  sync_id INTEGER,
  correlation INTEGER,
  record_correlation INTEGER
);

-- EVENT: annotations (kind: 1 push/pop, 2 start/end, 3 mark, 4 framework operator, 5 projected to GPU).
CREATE TABLE nvtx_range (
  id INTEGER PRIMARY KEY,
  rank INTEGER NOT NULL,
  tid INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  domain_id INTEGER NOT NULL,
  category_id INTEGER NOT NULL,
  name_id INTEGER NOT NULL,
  start_ns INTEGER NOT NULL,
  end_ns INTEGER,
  raw_start_ns INTEGER NOT NULL,
  raw_end_ns INTEGER,
  depth INTEGER,
  color INTEGER,
  payload INTEGER,
  flags INTEGER NOT NULL            -- bit 0: never closed, ended at the end of the trace
);

CREATE TABLE communicator (
  id INTEGER PRIMARY KEY,
  hash INTEGER,                     -- laggard's identity
  nccl_hash INTEGER,
  n_ranks INTEGER,
  parent_id INTEGER,
  name TEXT NOT NULL,
  description TEXT NOT NULL
);

CREATE TABLE comm_member (
  comm_id INTEGER NOT NULL,
  comm_rank INTEGER NOT NULL,
  rank INTEGER,                     -- NULL: not known who that is
  recorded INTEGER NOT NULL,        -- 1: its process recorded this communicator
  PRIMARY KEY (comm_id, comm_rank)
) WITHOUT ROWID;

-- What executes communication on one rank: one kernel (or group of fused operations). Start and end
-- are the kernel's; all operations of the launch share them.
CREATE TABLE nccl_launch (
  id INTEGER PRIMARY KEY,
  rank INTEGER NOT NULL,
  comm_id INTEGER NOT NULL,
  group_id INTEGER,
  n_ops INTEGER NOT NULL,
  stream INTEGER,
  start_ns INTEGER,                 -- NULL: not started (or not recorded)
  end_ns INTEGER,                   -- NULL: not finished (or not recorded)
  raw_start_ns INTEGER,
  raw_end_ns INTEGER,
  gpu_event_id INTEGER
);

-- EVENT: communication operations as called.
CREATE TABLE nccl_op (
  id INTEGER PRIMARY KEY,
  rank INTEGER NOT NULL,
  comm_id INTEGER NOT NULL,
  func INTEGER NOT NULL,            -- schema/record/enums.h: 1 all_reduce 2 all_gather 3 reduce_scatter
                                    -- 4 broadcast 5 reduce 6 all_to_all 7 gather 8 scatter 9 send
                                    -- 10 recv 11 send_recv 12 barrier
  seq INTEGER,
  peer INTEGER,                     -- communicator rank of root or peer
  count INTEGER,
  datatype INTEGER,
  redop INTEGER,
  bytes INTEGER,                    -- count x element size
  tid INTEGER,
  enter_ns INTEGER NOT NULL,
  leave_ns INTEGER,
  raw_enter_ns INTEGER NOT NULL,
  raw_leave_ns INTEGER,
  group_id INTEGER,
  launch_id INTEGER,                -- nccl_launch
  instance_id INTEGER,
  sources INTEGER NOT NULL,
  result INTEGER
);

-- What the host had seen of an operation when its source was written, from sources that record hosts
-- only. started_ns and completed_ns: when it looked, not when it happened.
CREATE TABLE op_seen (
  op_id INTEGER PRIMARY KEY,        -- nccl_op
  state INTEGER,                    -- 1 enqueued, 2 started, 3 completed
  started_ns INTEGER,
  completed_ns INTEGER,
  duration_ns INTEGER,
  timeout_ns INTEGER,
  record_id INTEGER,                -- the source's own
  sizes TEXT NOT NULL               -- of its tensors: in -> out
);

-- How far a rank had come in a communicator when its source was written, by the communicator's numbers.
CREATE TABLE comm_progress (
  rank INTEGER NOT NULL,
  comm_id INTEGER NOT NULL,
  last_enqueued INTEGER,
  last_started INTEGER,
  last_completed INTEGER,
  PRIMARY KEY (rank, comm_id)
) WITHOUT ROWID;

-- One collective (or matched send/receive) over all its ranks.
CREATE TABLE instance (
  id INTEGER PRIMARY KEY,
  comm_id INTEGER NOT NULL,
  func INTEGER NOT NULL,            -- send_recv (11) for a matched pair
  seq INTEGER NOT NULL,
  src INTEGER,                      -- communicator ranks, pairs only
  dst INTEGER,
  bytes INTEGER,                    -- S of the bus bandwidth formulas
  datatype INTEGER,
  n_members INTEGER NOT NULL,
  n_recorded INTEGER NOT NULL,      -- members with this operation on record
  n_started INTEGER NOT NULL,
  n_finished INTEGER NOT NULL,
  first_start_ns INTEGER,
  last_start_ns INTEGER,
  first_end_ns INTEGER,
  last_end_ns INTEGER,
  last_rank INTEGER,                -- job rank that started last; NULL where not all are recorded
                                    -- or the order is within the clock error
  lead_ns INTEGER,                  -- last start minus last-but-one start
  flags INTEGER NOT NULL            -- bit 0 arguments differ between members; 1 matched by order only;
                                    -- 2 shares its kernel with other operations (fused or grouped)
);

-- Clock map per host (device NULL) and per device: corrected = raw + offset_ns + drift_ppm * 1e-6 *
-- (raw - ref_ns), valid from from_ns (raw) to the next row's. uncertainty: of the estimate; bound:
-- the interval causality allows for the correction (both ns).
CREATE TABLE clock_map (
  host_id INTEGER NOT NULL,
  device_rank INTEGER,              -- rank whose device this row is for; NULL = the host
  from_ns INTEGER NOT NULL,
  ref_ns INTEGER NOT NULL,
  offset_ns INTEGER NOT NULL,
  drift_ppm REAL NOT NULL,
  uncertainty_ns INTEGER,
  bound_lo_ns INTEGER,
  bound_hi_ns INTEGER,
  method TEXT NOT NULL,
  n_observations INTEGER NOT NULL,
  own_ns INTEGER,                   -- of the uncertainty, what a device does not share with its host's others
  basis TEXT                        -- hosts: what joins it to the reference
);

CREATE TABLE clock_sample (
  process_id INTEGER NOT NULL,
  realtime_ns INTEGER NOT NULL,
  monotonic_ns INTEGER,
  tsc INTEGER,
  cupti_ns INTEGER,
  bracket_ns INTEGER,
  device INTEGER
);

-- merge --repair-order only: at a moment of the common clock the rank's times are shift_ns later than the
-- clock map says; between two rows on the line between them, outside of a rank's rows not at all.
CREATE TABLE clock_repair (rank INTEGER NOT NULL, at_ns INTEGER NOT NULL, shift_ns INTEGER NOT NULL);

CREATE TABLE loss (process_id INTEGER, kind TEXT NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL, from_ns INTEGER, until_ns INTEGER);
CREATE TABLE gap (process_id INTEGER, what TEXT NOT NULL, reason TEXT NOT NULL, from_ns INTEGER, until_ns INTEGER);
CREATE TABLE receipt (process_id INTEGER PRIMARY KEY, hook_ns INTEGER, thread_ns INTEGER, bytes INTEGER, records INTEGER, lost INTEGER);

-- Events whose times cannot be true; they are in no other table.
CREATE TABLE quarantine (
  id INTEGER PRIMARY KEY,
  rank INTEGER,
  record TEXT NOT NULL,
  reason TEXT NOT NULL,
  raw_start_ns INTEGER,
  raw_end_ns INTEGER,
  name_id INTEGER,
  correlation INTEGER
);

-- What the merge found: missing ranks, cut files, unmatched and mismatched operations, violations.
CREATE TABLE finding (
  id INTEGER PRIMARY KEY,
  severity INTEGER NOT NULL,        -- 0 note, 1 warning, 2 error
  kind TEXT NOT NULL,
  rank INTEGER,
  comm_id INTEGER,
  seq INTEGER,
  count INTEGER NOT NULL,
  text TEXT NOT NULL
);

-- Level of detail of gpu_event, so that any window is drawn without reading events: each rank's time as
-- a whole (device, context and stream NULL), and each of its streams'.
CREATE TABLE pyramid_lane (
  id INTEGER PRIMARY KEY,           -- ascending by rank (added ranks last); a rank's own first
  rank INTEGER NOT NULL,
  device INTEGER,
  context INTEGER,
  stream INTEGER,
  n_events INTEGER NOT NULL,
  first_ns INTEGER NOT NULL,        -- first start and last end
  last_ns INTEGER NOT NULL,
  shift INTEGER NOT NULL,           -- finest and coarsest level; buckets of 2^shift ns
  top_shift INTEGER NOT NULL
);

-- 256 buckets of one level and lane, from segment * 256 * 2^shift ns on; absent where all are empty.
-- schema/record/pyramid.h describes the blob. A frame reads a few segments of many lanes.
CREATE TABLE pyramid (
  shift INTEGER NOT NULL,
  segment INTEGER NOT NULL,
  lane_id INTEGER NOT NULL,         -- pyramid_lane
  buckets BLOB NOT NULL,
  PRIMARY KEY (shift, segment, lane_id)
) WITHOUT ROWID;
