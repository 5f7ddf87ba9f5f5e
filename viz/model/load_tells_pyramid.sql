-- Merged traces of before these tables came have none.
SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name IN ('pyramid', 'pyramid_lane');
