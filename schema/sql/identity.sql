SELECT a.application_id, v.user_version FROM pragma_application_id() AS a, pragma_user_version() AS v;
