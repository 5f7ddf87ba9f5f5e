SELECT id, value FROM string;
