/* SPDX-License-Identifier: Apache-2.0 */
/* plain FILE: what the pickle reader makes of a file, as JSON on stdout, for a comparison with Python's
 * own reader. Refusals go to stderr, exit 2. */
#include <stdio.h>
#include <stdlib.h>

#include "schema/base/json_write.h"
#include "schema/base/pickle.h"

#define DEPTH_MAX 64
#define FILE_MAX  ((size_t)64 << 20)

static void write_datum(struct lag_json *json, const struct lag_datum *d, unsigned depth)
{
	if (depth > DEPTH_MAX) {
		lag_json_text(json, "...");
		return;
	}
	switch (d->kind) {
	case LAG_DATUM_BOOL:
		lag_json_bool(json, d->i);
		return;
	case LAG_DATUM_INT:
		lag_json_int(json, d->i);
		return;
	case LAG_DATUM_REAL:
		lag_json_real(json, d->d);
		return;
	case LAG_DATUM_TEXT:
	case LAG_DATUM_BYTES:
		lag_json_text(json, d->text);
		return;
	case LAG_DATUM_BIG:
		lag_json_text(json, "big");
		return;
	case LAG_DATUM_NONE:
		lag_json_null(json);
		return;
	case LAG_DATUM_DICT:
		lag_json_begin(json, '{');
		for (uint32_t i = 0; i + 1 < d->n; i += 2) {
			lag_json_key(json, lag_datum_text(d->items[i]));
			write_datum(json, d->items[i + 1], depth + 1);
		}
		lag_json_end(json, '}');
		return;
	default:
		lag_json_begin(json, '[');
		for (uint32_t i = 0; i < d->n; i++)
			write_datum(json, d->items[i], depth + 1);
		lag_json_end(json, ']');
	}
}

static int show(const char *path, const void *bytes, size_t n)
{
	struct lag_arena arena = { .max = FILE_MAX };
	struct lag_datum *root = NULL;
	struct lag_buf out = { 0 };
	struct lag_json json = { .out = &out };
	struct lag_err err = { 0 };
	int code = 2;

	if (lag_failed(lag_pickle_read(bytes, n, &arena, &root, NULL, &err))) {
		(void)fprintf(stderr, "%s: %s\n", path, err.text);
	} else {
		write_datum(&json, root, 0);
		code = puts(lag_buf_text(&out)) < 0 || out.failed ? 2 : 0;
	}
	lag_buf_release(&out);
	lag_arena_release(&arena);
	return code;
}

int main(int argc, char **argv)
{
	char *bytes = malloc(FILE_MAX);
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	int code = 2;

	if (!file || !bytes) {
		(void)fprintf(stderr, "usage: plain FILE\n");
	} else {
		code = show(argv[1], bytes, fread(bytes, 1, FILE_MAX, file));
	}
	if (file)
		(void)fclose(file);
	free(bytes);
	return code;
}
