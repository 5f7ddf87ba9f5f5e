/* SPDX-License-Identifier: Apache-2.0 */
/* twin_records write FILE SEED: a trace of random records of all kinds, left open or sealed.
 * twin_records read FILE: what the C reader finds in it, a line a record: kind, values, text in hex. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/map.h"
#include "schema/base/parse.h"
#include "schema/trace/trace_reader.h"
#include "schema/trace/trace_writer.h"

#define N_RECORDS 1200

static uint64_t draw(uint64_t *state)
{
	return lag_hash_u64(*state += 0x9e3779b97f4a7c15u);
}

static int64_t draw_value(uint64_t *state, int64_t before)
{
	static const int64_t extremes[] = { 0,   -1,        63,       64,           127,
					    128, INT64_MAX, LAG_NONE, INT64_MIN + 1 };
	uint64_t how = draw(state), v = draw(state);

	switch (how % 8) {
	case 0:
		return extremes[v % (sizeof(extremes) / sizeof(extremes[0]))];
	case 1:
		return (int64_t)(v >> (how >> 8) % 64);
	case 2:
		return (int64_t)((uint64_t)before + v % 9);
	case 3:
		return (int64_t)((uint64_t)before - v % 5000);
	default:
		return before;
	}
}

static int write_file(const char *path, uint64_t seed)
{
	static struct lag_trace_producer prods[2];
	static struct lag_record last[LAG_REC_LIMIT];
	struct lag_trace_header head = { .pid = seed, .host = "twin" };
	struct lag_trace_file file;
	struct lag_err err;

	if (lag_failed(lag_trace_file_create(&file, path, 0600, &head, &err))) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	for (size_t i = 0; i < 2; i++) {
		lag_trace_producer_init(&prods[i], &file, 40 + i);
		prods[i].last_time = INT64_C(1700000000000000000);
	}
	for (int n = 0; n < N_RECORDS;) {
		const struct lag_record_info *info =
			lag_record_info_get((unsigned)(draw(&seed) % LAG_REC_LIMIT));
		struct lag_record *rec;

		if (!info)
			continue;
		rec = &last[info->kind];
		if (!rec->kind)
			lag_record_init(rec, info->kind);
		for (size_t i = 0; i < info->n_fields; i++)
			rec->field[i] = draw_value(&seed, rec->field[i]);
		if (info->kind == LAG_REC_string) {
			rec->bytes = "some text";
			rec->n_bytes = draw(&seed) % 9;
		}
		if (!lag_trace_append(&prods[draw(&seed) % 2], rec))
			return 1;
		n++;
	}
	lag_trace_producer_close(&prods[0]);
	if (seed % 2)
		lag_trace_producer_close(&prods[1]);
	lag_trace_file_close(&file);
	return 0;
}

static int read_file(const char *path)
{
	static uint8_t bytes[1 << 24];
	FILE *f = fopen(path, "rb");
	size_t n = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
	struct lag_trace_reader *rd;
	struct lag_record rec;
	struct lag_err err;
	uint32_t producer;
	uint64_t tid;

	if (f)
		(void)fclose(f);
	if (lag_trace_reader_open(bytes, n, &rd, &err) != LAG_OK) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	while (lag_trace_reader_next(rd, &rec, &producer, &tid) == LAG_OK) {
		const struct lag_record_info *info = lag_record_info_get(rec.kind);

		printf("%u %" PRIu64 " %s", producer, tid, info->name);
		for (size_t i = 0; i < info->n_fields; i++)
			printf(" %" PRId64, rec.field[i]);
		for (size_t i = 0; rec.kind == LAG_REC_string && i < rec.n_bytes; i++)
			printf("%s%02x", i ? "" : " ", (unsigned)(uint8_t)rec.bytes[i]);
		printf("\n");
	}
	printf("damage %d\n", lag_trace_reader_damage(rd)->bad_chunks != 0 ||
				      lag_trace_reader_damage(rd)->bad_records != 0);
	lag_trace_reader_close(rd);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "write"))
		return write_file(argv[2], strtoull(argv[3], NULL, 10));
	if (argc == 3 && !strcmp(argv[1], "read"))
		return read_file(argv[2]);
	(void)fprintf(stderr, "usage: twin_records write FILE SEED | read FILE\n");
	return 2;
}
