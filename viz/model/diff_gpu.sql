SELECT g.rank, g.stream, coalesce(s.value, p.value, ''), g.start_ns, g.end_ns - g.start_ns, g.bytes, g.copy_kind,
       c.grid_x * c.grid_y * c.grid_z, c.block_x * c.block_y * c.block_z, g.launch_id IS NOT NULL
FROM gpu_event AS g
LEFT JOIN kernel_name AS k ON k.name_id = g.name_id
LEFT JOIN string AS s ON s.id = k.full_id
LEFT JOIN string AS p ON p.id = g.name_id
LEFT JOIN launch_config AS c ON c.id = g.config_id
ORDER BY g.rank, g.stream, g.start_ns, g.id;
