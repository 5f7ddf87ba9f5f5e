SELECT process.rank, loss.kind, loss.reason, SUM(loss.count)
FROM loss LEFT JOIN process ON process.id = loss.process_id
GROUP BY process.rank, loss.kind, loss.reason
ORDER BY process.rank, loss.kind, loss.reason;
