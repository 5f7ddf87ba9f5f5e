/* SPDX-License-Identifier: Apache-2.0 */
/* The Kineto importer on any bytes: it ends, gives one part or one message, and what it gives is
 * consistent: each operation has its communicator and its kernel. And the scanner's two ways, the fast
 * and the careful one, read the same events and repair the same damage, in memory and in chunks. */
#include "merge/kineto_event.h"
#include "tests/fuzz/import.h"

static void check(const struct lag_part *p, const struct lag_pool *pool)
{
	size_t n_ops = LAG_PART_COUNT(p, op), n_comms = LAG_PART_COUNT(p, comm);

	for (size_t i = 0; i < n_ops; i++) {
		const struct lag_rec_op *op = &LAG_PART_AT(p, op, i);

		lag_fuzz_require(op->comm_id >= 1 && (size_t)op->comm_id <= n_comms);
		lag_fuzz_require(op->op_id >= 1 && (size_t)op->op_id <= n_ops);
		lag_fuzz_require(op->func >= 0 && op->func < LAG_FUNC_LIMIT);
	}
	for (size_t i = 0; i < LAG_PART_COUNT(p, kernel); i++) {
		struct lag_rec_kernel k = LAG_PART_GET(p, kernel, i);

		lag_fuzz_require(k.start_ns != LAG_NONE);
		lag_fuzz_require(k.name >= 0 && (size_t)k.name < lag_strtab_count(&pool->strings));
		lag_fuzz_require(k.op_id == LAG_NONE || (k.op_id >= 1 && (size_t)k.op_id <= n_ops));
		lag_fuzz_require(k.config == LAG_NONE ||
				 (k.config >= 0 && (size_t)k.config < pool->configs.n));
	}
}

static long fill(void *state, void *buf, size_t room, struct lag_err *err)
{
	struct lag_fuzz_bytes *b = state;
	size_t n = b->n - b->at;

	(void)err;
	n = n < 100 ? n : 100;
	n = n < room ? n : room;
	if (n)
		memcpy(buf, b->data + b->at, n);
	b->at += n;
	return (long)n;
}

/* Shapes and types of inputs are read where they say something about communication. */
static bool same_event(const struct lag_kineto_event *a, const struct lag_kineto_event *b)
{
	bool shapes = a->cat == LAG_KC_ANNOTATION;

	for (size_t i = 0; i < LAG_KI_LIMIT; i++) {
		if (a->i[i] != b->i[i] && (shapes || i != LAG_KI_INPUT_ELEMENTS))
			return false;
	}
	for (size_t i = 0; i < LAG_KT_LIMIT; i++) {
		if (!lag_span_is(a->text[i], b->text[i]) && (shapes || i != LAG_KT_INPUT_TYPE))
			return false;
	}
	return a->phase == b->phase && a->cat == b->cat && a->ts_ns == b->ts_ns &&
	       a->dur_ns == b->dur_ns && a->pid == b->pid && a->tid == b->tid &&
	       a->legacy_gpu == b->legacy_gpu && memcmp(a->grid, b->grid, sizeof(a->grid)) == 0 &&
	       memcmp(a->block, b->block, sizeof(a->block)) == 0;
}

/* Up to the first array. False: there is none. */
static bool open_events(struct lag_kineto_scan *s, bool careful)
{
	struct lag_err err = { 0 };

	s->careful = careful;
	while (lag_json_next(&s->json, &err) == LAG_OK) {
		if (s->json.kind == LAG_JSON_ARRAY)
			return true;
	}
	return false;
}

static void compare_ways(const uint8_t *data, size_t n)
{
	static struct lag_kineto_scan fast, careful;
	struct lag_fuzz_bytes b = { data, n, 0 };
	enum lag_status st = LAG_OK, st_careful;
	struct lag_err err = { 0 };

	lag_kineto_scan_init(&fast);
	lag_kineto_scan_init(&careful);
	lag_fuzz_require(lag_json_init_fill(&fast.json, fill, &b, true) == LAG_OK);
	lag_json_init_bytes(&careful.json, data, n, true);
	if (open_events(&fast, false) && open_events(&careful, true)) {
		while (st == LAG_OK || st == LAG_WARN) {
			st = lag_kineto_next(&fast, &err);
			st_careful = lag_kineto_next(&careful, &err);
			lag_fuzz_require(st == st_careful);
			lag_fuzz_require(st != LAG_OK || same_event(&fast.event, &careful.event));
		}
		lag_fuzz_require(memcmp(fast.json.repairs, careful.json.repairs,
					sizeof(fast.json.repairs)) == 0);
		lag_fuzz_require(memcmp(fast.json.first_at, careful.json.first_at,
					sizeof(fast.json.first_at)) == 0);
		lag_fuzz_require(careful.n_plain == 0);
	}
	lag_json_release(&fast.json);
	lag_json_release(&careful.json);
	lag_kineto_scan_release(&fast);
	lag_kineto_scan_release(&careful);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	lag_fuzz_import(&lag_importer_kineto, "rank0_fuzz.json", data, n, check);
	compare_ways(data, n);
	return 0;
}
