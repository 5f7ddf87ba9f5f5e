SELECT severity, rank, count, kind, text FROM finding ORDER BY severity DESC, kind, rank, id;
