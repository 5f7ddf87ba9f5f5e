SELECT value, COUNT(DISTINCT source_id), (SELECT COUNT(DISTINCT source_id) FROM source_fact)
FROM source_fact WHERE key = 'not recorded'
GROUP BY value
ORDER BY COUNT(DISTINCT source_id) DESC, value;
