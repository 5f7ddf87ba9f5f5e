/* SPDX-License-Identifier: Apache-2.0 */
/* The key table and its look-up: some forty short lines, searched one by one. */
#include "viz/tui/keymap.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/fmt.h"

const struct lag_key_line lag_key_lines[] = {
#define LAG_KEY(INTENT, keys, where, show, label, help) \
	{ LAG_INTENT_##INTENT, keys, where, show, label, help },
#include "viz/tui/keys.def"
};

const size_t lag_key_lines_n = sizeof(lag_key_lines) / sizeof(lag_key_lines[0]);

static const struct {
	const char *name;
	uint32_t key;
} names[] = {
	{ "Enter", LAG_KEY_ENTER },
	{ "Esc", LAG_KEY_ESC },
	{ "Tab", LAG_KEY_TAB },
	{ "BackTab", LAG_KEY_BACKTAB },
	{ "Backspace", LAG_KEY_BACKSPACE },
	{ "Up", LAG_KEY_UP },
	{ "Down", LAG_KEY_DOWN },
	{ "Left", LAG_KEY_LEFT },
	{ "Right", LAG_KEY_RIGHT },
	{ "Home", LAG_KEY_HOME },
	{ "End", LAG_KEY_END },
	{ "PgUp", LAG_KEY_PGUP },
	{ "PgDn", LAG_KEY_PGDN },
	{ "Delete", LAG_KEY_DELETE },
	{ "Space", ' ' },
};

uint32_t lag_key_parse(const char *name, size_t n)
{
	uint32_t code = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i].name) == n && memcmp(names[i].name, name, n) == 0)
			return names[i].key;
	}
	if (n == 3 && name[0] == 'C' && name[1] == '-' && name[2] >= 'a' && name[2] <= 'z')
		return (uint32_t)(name[2] - 'a' + 1);
	if ((n == 2 || n == 3) && name[0] == 'F') {
		char *end;
		long number = strtol(name + 1, &end, 10);

		if (end == name + n && number >= 1 && number <= 12)
			return LAG_KEY_F1 + (uint32_t)number - 1;
	}
	return n && lag_utf8_decode(name, n, &code) == n ? code : 0;
}

static bool has_key(const char *keys, uint32_t key)
{
	while (*keys) {
		size_t n = strcspn(keys, " ");

		if (lag_key_parse(keys, n) == key)
			return true;
		keys += n;
		keys += strspn(keys, " ");
	}
	return false;
}

bool lag_keymap_known(uint32_t key)
{
	for (size_t i = 0; i < lag_key_lines_n; i++) {
		if (has_key(lag_key_lines[i].keys, key))
			return true;
	}
	return false;
}

enum lag_intent lag_keymap_find(uint32_t key, enum lag_view_id view)
{
	for (size_t i = 0; i < lag_key_lines_n; i++) {
		const struct lag_key_line *line = &lag_key_lines[i];

		if (line->where & 1U << view && has_key(line->keys, key))
			return line->intent;
	}
	return LAG_INTENT_NONE;
}
