SELECT comm_id, comm_rank, rank, recorded FROM comm_member ORDER BY comm_id, comm_rank;
