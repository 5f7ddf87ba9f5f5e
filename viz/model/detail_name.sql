-- A kernel's short and full name and class; of copies and sets, which have no such row, the string itself.
SELECT b.value, f.value, k.class
FROM (SELECT ? AS id, ? AS kind) AS n
LEFT JOIN kernel_name AS k ON n.kind = 0 AND k.name_id = n.id
LEFT JOIN string AS b ON b.id = coalesce(k.short_id, n.id)
LEFT JOIN string AS f ON f.id = coalesce(k.full_id, n.id);
