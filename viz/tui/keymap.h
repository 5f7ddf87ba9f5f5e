/* SPDX-License-Identifier: Apache-2.0 */
/* Keys to intents. A key is a Unicode character or one of the codes below; views only know intents.
 * keys.def holds the whole map; help, bottom line and manual are made from it. */
#ifndef VIZ_TUI_KEYMAP_H
#define VIZ_TUI_KEYMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum lag_view_id {
#define LAG_VIEW(NAME, id, title, brief, summary) LAG_VIEW_##NAME,
#include "viz/tui/views.def"
	LAG_VIEW_LIMIT,
};

/* Where a key works: a set of views. */
#define LAG_AT_ANY      0xffffU
#define LAG_AT_TIMELINE (1U << LAG_VIEW_TIMELINE)
#define LAG_AT_PIPELINE (1U << LAG_VIEW_PIPELINE)
#define LAG_AT_TIME     (LAG_AT_TIMELINE | LAG_AT_PIPELINE)
#define LAG_AT_ROWS     (LAG_AT_TIMELINE | 1U << LAG_VIEW_STRAGGLERS)
#define LAG_AT_TABLES   (1U << LAG_VIEW_COLLECTIVES | 1U << LAG_VIEW_KERNELS | 1U << LAG_VIEW_HANG)
/* Views whose rows open something, and those that can be searched. */
#define LAG_AT_OPEN (LAG_AT_ANY & ~(1U << LAG_VIEW_TRUST))
#define LAG_AT_FIND (LAG_AT_TABLES | LAG_AT_TIMELINE | 1U << LAG_VIEW_OVERVIEW)

enum lag_intent {
	LAG_INTENT_NONE = 0,
#define LAG_KEY(INTENT, keys, where, show, label, help) LAG_INTENT_##INTENT,
#include "viz/tui/keys.def"
	LAG_INTENT_LIMIT,
};

/* Key codes above Unicode. */
enum lag_key {
	LAG_KEY_ENTER = 0x200000,
	LAG_KEY_ESC,
	LAG_KEY_TAB,
	LAG_KEY_BACKTAB,
	LAG_KEY_BACKSPACE,
	LAG_KEY_UP,
	LAG_KEY_DOWN,
	LAG_KEY_LEFT,
	LAG_KEY_RIGHT,
	LAG_KEY_HOME,
	LAG_KEY_END,
	LAG_KEY_PGUP,
	LAG_KEY_PGDN,
	LAG_KEY_DELETE,
	LAG_KEY_F1, /* F1..F12 in order */
	LAG_KEY_F12 = LAG_KEY_F1 + 11,
	LAG_KEY_UNKNOWN,
};

struct lag_key_line {
	enum lag_intent intent;
	const char *keys; /* "Up k" */
	unsigned where;
	int show;
	const char *label, *help;
};

extern const struct lag_key_line lag_key_lines[]; /* in the order of keys.def */
extern const size_t lag_key_lines_n;

/* What a key means in a view; LAG_INTENT_NONE = nothing. */
enum lag_intent lag_keymap_find(uint32_t key, enum lag_view_id view);

/* Whether it means something in any view. */
bool lag_keymap_known(uint32_t key);

/* A key by its name in keys.def ("Up", "C-l", "F6", "Space", "k"); n bytes. 0 = no such key. */
uint32_t lag_key_parse(const char *name, size_t n);

#endif
