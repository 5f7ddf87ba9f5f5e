# Turns one .sql file into a header with one string constant. Called by lag_embed_sql. The header counts
# as a system header because ISO C promises string constants of 4095 bytes only and -Wpedantic says so.
file(READ "${IN}" text)
string(REPLACE "\\" "\\\\" text "${text}")
string(REPLACE "\"" "\\\"" text "${text}")
string(REPLACE "\n" "\\n\"\n\"" text "${text}")
file(WRITE "${OUT}" "/* Made from ${NAME}; do not edit. */\n#pragma GCC system_header\nstatic const char ${NAME}[] = \"${text}\";\n")
