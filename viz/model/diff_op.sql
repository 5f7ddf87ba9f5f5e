-- Communicators go by their members: their ids and hashes are others in each run.
WITH members AS (SELECT comm_id, group_concat(coalesce(rank, '-'), ' ') AS ranks
                 FROM (SELECT comm_id, rank FROM comm_member ORDER BY comm_id, comm_rank) GROUP BY comm_id)
SELECT o.rank, o.func, 'over ranks ' || coalesce(m.ranks, '-'),
       o.enter_ns, o.leave_ns - o.enter_ns, o.bytes, o.count, o.datatype, o.redop, o.peer, o.seq, o.result
FROM nccl_op AS o
LEFT JOIN members AS m ON m.comm_id = o.comm_id
ORDER BY o.rank, o.func, o.enter_ns, o.id;
