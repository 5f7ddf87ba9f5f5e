SELECT path, format, status, note, n_records, n_bad FROM source ORDER BY id;
