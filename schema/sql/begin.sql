-- All rows go in as one transaction.
BEGIN;
