# Turns one .sql file into a header with one string constant. Called by lag_embed_sql.
file(READ "${IN}" text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(WRITE "${OUT}" "/* Made from ${NAME}; do not edit. */\nstatic const char ${NAME}[] = \"${text}\";\n")
