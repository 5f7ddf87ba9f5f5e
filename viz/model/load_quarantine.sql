SELECT COUNT(*) FROM quarantine;
