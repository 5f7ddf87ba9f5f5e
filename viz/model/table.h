/* SPDX-License-Identifier: Apache-2.0 */
/* Typed tables: what an analysis returns and what every renderer (text, CSV, JSON, Markdown, TUI)
 * shows. A number carries its unit and says what it is a share of; an unknown is null, never 0. */
#ifndef VIZ_MODEL_TABLE_H
#define VIZ_MODEL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/buf.h"
#include "schema/base/err.h"
#include "schema/base/mem.h"

enum lag_unit {
	LAG_UNIT_TEXT,  /* names: shortened where room is short */
	LAG_UNIT_PROSE, /* sentences: folded, never cut */
	LAG_UNIT_ID,    /* integers that are names: rank, stage, step */
	LAG_UNIT_COUNT, /* integers that can be added */
	LAG_UNIT_NS,    /* integer ns; the column's name ends in _ns */
	LAG_UNIT_BYTES,
	LAG_UNIT_SHARE,  /* real 0..1; `of` says of what */
	LAG_UNIT_RATIO,  /* real, 1.00 = equal */
	LAG_UNIT_GBPS,   /* real, 1e9 bytes a second */
	LAG_UNIT_PPM,    /* real */
	LAG_UNIT_NUMBER, /* real, in the unit that another cell of the row names */
};

/* Whether cells hold text. */
static inline bool lag_unit_is_text(enum lag_unit unit)
{
	return unit == LAG_UNIT_TEXT || unit == LAG_UNIT_PROSE;
}

struct lag_column {
	const char *name;  /* JSON and CSV name */
	const char *title; /* heading for people */
	enum lag_unit unit;
	const char *
		of; /* what a share is a share of, or over what a value was taken; NULL = nothing */
};

struct lag_cell {
	bool null;

	union {
		int64_t i;
		double d;
		char *text; /* owned by the table */
	};
};

/* What the rows answer, where they answer a question: it decides the report's exit code. */
enum lag_outcome {
	LAG_OUTCOME_FINE = 0,
	LAG_OUTCOME_FINDING = 1, /* something is wrong and named */
	LAG_OUTCOME_UNSURE = 2,  /* the data cannot tell, which is never "fine" */
};

/* Rows are filled left to right. Zero-initialise with lag_table_init. */
struct lag_table {
	const char *analysis;
	const struct lag_column *columns; /* borrowed, static */
	size_t n_columns;
	struct lag_cell *cells; /* n_rows * n_columns */
	size_t n_rows, cap_rows, next_column;
	struct lag_buf *notes; /* one line each: reasons for nulls, limits, what was withheld */
	size_t n_notes;
	size_t n_notes_more;      /* beyond those; the last of them says how many */
	enum lag_outcome outcome; /* set by the analysis */
	bool failed;              /* out of memory: checked once, by lag_table_finish */
};

void lag_table_init(struct lag_table *table, const char *analysis, const struct lag_column *columns,
		    size_t n);
void lag_table_release(struct lag_table *table);

void lag_table_row(struct lag_table *table);                    /* begins a row */
void lag_table_int(struct lag_table *table, int64_t value);     /* LAG_NONE becomes null */
void lag_table_real(struct lag_table *table, double value);     /* not finite becomes null */
void lag_table_text(struct lag_table *table, const char *text); /* copied; NULL becomes null */
void lag_table_null(struct lag_table *table);
void lag_table_note(struct lag_table *table, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Spells units in its texts and notes for a reader of more than ASCII (lag_fmt_units). */
void lag_table_units(struct lag_table *table);

const struct lag_cell *lag_table_cell(const struct lag_table *table, size_t row, size_t column);
int lag_table_find_column(const struct lag_table *table, const char *name); /* -1 = none */

/* The cell as people read it ("284.1 ms", "61.2 %", "-" for null). */
void lag_table_format(const struct lag_table *table, size_t row, size_t column,
		      struct lag_buf *out);

void lag_cell_format(const struct lag_cell *cell, enum lag_unit unit, struct lag_buf *out);

/* LAG_ERR_SYSTEM when anything above ran out of memory or a row is incomplete. */
enum lag_status lag_table_finish(struct lag_table *table, struct lag_err *err) LAG_MUST_USE;

#endif
