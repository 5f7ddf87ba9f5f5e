SELECT id, rank, device, context, stream, n_events, first_ns, last_ns, shift, top_shift
FROM pyramid_lane ORDER BY rank, id;
