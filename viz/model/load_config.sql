SELECT id, grid_x, grid_y, grid_z, block_x, block_y, block_z, static_smem_bytes, dynamic_smem_bytes,
       registers
FROM launch_config;
