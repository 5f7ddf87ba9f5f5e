SELECT process.rank, gap.what, gap.reason, gap.from_ns, gap.until_ns
FROM gap LEFT JOIN process ON process.id = gap.process_id
ORDER BY process.rank, gap.from_ns;
