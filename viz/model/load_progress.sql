SELECT rank, comm_id, last_enqueued, last_started, last_completed FROM comm_progress ORDER BY rank, comm_id;
