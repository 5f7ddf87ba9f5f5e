SELECT q.rank, q.record, q.reason, COUNT(*), MIN(q.id), q.raw_start_ns, q.raw_end_ns, s.value
FROM quarantine AS q LEFT JOIN string AS s ON s.id = q.name_id
GROUP BY q.rank, q.record, q.reason
ORDER BY q.rank, COUNT(*) DESC, q.record, q.reason;
