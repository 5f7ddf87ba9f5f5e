SELECT rank.rank, rank.process_id, rank.host_id, rank.device, process.local_rank, process.clean_exit,
       lost.n, process.world_size, process.start_ns
FROM rank
LEFT JOIN process ON process.id = rank.process_id
LEFT JOIN (SELECT process_id, SUM(count) AS n FROM loss GROUP BY process_id) AS lost
  ON lost.process_id = rank.process_id
ORDER BY rank.rank;
