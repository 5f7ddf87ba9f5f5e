SELECT buckets FROM pyramid WHERE shift = ? AND segment = ? AND lane_id = ?;
