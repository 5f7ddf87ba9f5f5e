SELECT host_id, device_rank, from_ns, offset_ns, drift_ppm, uncertainty_ns, bound_lo_ns, bound_hi_ns,
       method, n_observations, ref_ns, own_ns, basis
FROM clock_map ORDER BY host_id, device_rank IS NOT NULL, device_rank, from_ns;
