-- Rows of a trace that late ranks change, in the order of merge/append.c. These tables are small and
-- are written anew.
DELETE FROM host;
DELETE FROM rank;
DELETE FROM communicator;
DELETE FROM comm_member;
DELETE FROM meta
WHERE key IN ('laggard_version', 'world_size', 'run_id', 'clock_method', 'clock_reference_host', 'clock_pairs',
              'clock_violations', 'clock_arriver_bias_ns');
-- One finding that is made anew; one instance with other members than before.
DELETE FROM finding WHERE id = ?;
UPDATE instance
SET bytes = ?2, n_members = ?3, n_recorded = ?4, n_started = ?5, n_finished = ?6, first_start_ns = ?7,
    last_start_ns = ?8, first_end_ns = ?9, last_end_ns = ?10, last_rank = ?11, lead_ns = ?12, flags = ?13
WHERE id = ?1;
