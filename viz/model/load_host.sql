SELECT id, name FROM host ORDER BY id;
