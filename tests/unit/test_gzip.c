/* SPDX-License-Identifier: Apache-2.0 */
/* Inflating and reading ahead: several members, padding, cuts at every byte, damage, and ends at any
 * time. */
#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "merge/stream.h"

struct memory {
	struct lag_stream base;
	const uint8_t *bytes;
	size_t n, at, most;
	bool fails_at_end;
};

static long memory_read(struct lag_stream *st, void *buf, size_t room, struct lag_err *err)
{
	struct memory *m = (struct memory *)st;
	size_t n = m->n - m->at;

	n = n < room ? n : room;
	n = n < m->most ? n : m->most;
	memcpy(buf, m->bytes + m->at, n);
	m->at += n;
	if (!n && m->fails_at_end) {
		(void)lag_err_set(err, LAG_ERR_SYSTEM, "the disk is gone");
		return -1;
	}
	return (long)n;
}

static void memory_close(struct lag_stream *st)
{
	(void)st;
}

static struct memory open_memory(const uint8_t *bytes, size_t n, size_t most)
{
	return (struct memory){ { memory_read, memory_close, NULL }, bytes, n, 0, most, false };
}

/* n bytes that are neither constant nor random. */
static uint8_t *make_text(size_t n)
{
	uint8_t *text = malloc(n + 1);
	uint32_t x = 1;

	assert_non_null(text);
	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		text[i] = (uint8_t)('a' + (x >> 24) % (i % 1000 < 500 ? 3 : 26));
	}
	return text;
}

static size_t pack(uint8_t *to, size_t room, const uint8_t *text, size_t n)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (Bytef *)(uintptr_t)text;
	z.avail_in = (uInt)n;
	z.next_out = to;
	z.avail_out = (uInt)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	room = z.total_out;
	assert_int_equal(deflateEnd(&z), Z_OK);
	return room;
}

/* What comes out, and whether it was damaged. */
static uint8_t *unpack(struct memory *raw, bool ahead, size_t chunk, size_t *n, bool *damaged,
		       long *last)
{
	struct lag_err err = { 0 };
	struct lag_stream *gz = lag_gzip_open(&raw->base, "memory", &err), *top = gz;
	size_t cap = 1 << 16;
	uint8_t *out = malloc(cap);

	assert_non_null(gz);
	assert_non_null(out);
	if (ahead)
		top = lag_ahead_open(gz, &err);
	assert_non_null(top);
	for (*n = 0;; *n += (size_t)*last) {
		if (*n + chunk > cap) {
			cap = 2 * cap + chunk;
			out = realloc(out, cap);
			assert_non_null(out);
		}
		*last = top->read(top, out + *n, chunk, &err);
		if (*last <= 0)
			break;
	}
	*damaged = top->damage != NULL;
	if (ahead)
		top->close(top);
	gz->close(gz);
	return out;
}

static void members_of_all_sizes_come_out_whole(void **state)
{
	static const size_t sizes[] = { 0, 1, 7, 100, 1000, 65536, 300000, 3, 1000000 };
	size_t total = 0, n_packed = 0, room = 4 << 20;
	uint8_t *text = make_text(2 << 20), *packed = malloc(room);

	(void)state;
	assert_non_null(packed);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		n_packed += pack(packed + n_packed, room - n_packed, text + total, sizes[i]);
		total += sizes[i];
		if (i % 3 == 2) { /* padding */
			memset(packed + n_packed, 0, 5);
			n_packed += 5;
		}
	}
	for (size_t most = 1; most < 1u << 20; most = most * 7 + 1) {
		for (int ahead = 0; ahead < 2; ahead++) {
			struct memory raw = open_memory(packed, n_packed, most);
			bool damaged;
			size_t n;
			long last;
			uint8_t *out =
				unpack(&raw, ahead, most < 100 ? 4096 : 70000, &n, &damaged, &last);

			assert_int_equal(last, 0);
			assert_false(damaged);
			assert_int_equal(n, total);
			assert_memory_equal(out, text, total);
			free(out);
		}
	}
	free(packed);
	free(text);
}

static void a_cut_gives_what_came_before(void **state)
{
	size_t n_text = 5000, room = 1 << 16, best = 0;
	uint8_t *text = make_text(n_text), *packed = malloc(room);
	size_t n_packed;

	(void)state;
	assert_non_null(packed);
	n_packed = pack(packed, room, text, n_text);
	for (size_t cut = 3; cut < n_packed; cut++) {
		struct memory raw = open_memory(packed, cut, room);
		bool damaged;
		size_t n;
		long last;
		uint8_t *out = unpack(&raw, cut % 2, 512, &n, &damaged, &last);

		assert_int_equal(last, 0);
		assert_true(damaged);
		assert_true(n <= n_text);
		assert_memory_equal(out, text, n);
		best = n > best ? n : best;
		free(out);
	}
	assert_int_equal(best, n_text); /* only the checksum is missing */
	free(packed);
	free(text);
}

static void damage_is_told_and_ends_it(void **state)
{
	size_t n_text = 400000, room = 1 << 20, n_damaged = 0;
	uint8_t *text = make_text(n_text), *packed = malloc(room);
	size_t n_packed;

	(void)state;
	assert_non_null(packed);
	n_packed = pack(packed, room, text, n_text);
	for (size_t at = 20; at < n_packed; at += n_packed / 97) {
		struct memory raw = open_memory(packed, n_packed, room);
		bool damaged;
		size_t n;
		long last;
		uint8_t *out;

		packed[at] ^= 0x10;
		out = unpack(&raw, at % 2, 65536, &n, &damaged, &last);
		assert_int_equal(last, 0);
		n_damaged += damaged;
		free(out);
		packed[at] ^= 0x10;
	}
	assert_true(n_damaged >= 96);
	free(packed);
	free(text);
}

static void errors_below_arrive_and_ends_come_early(void **state)
{
	size_t n_text = 3 << 20, room = 4 << 20;
	uint8_t *text = make_text(n_text), *packed = malloc(room);
	uint8_t some[70000];
	struct lag_err err = { 0 };
	struct memory raw;
	struct lag_stream *ahead;
	long last = 1;
	size_t n = 0;

	(void)state;
	assert_non_null(packed);
	raw = open_memory(text, n_text, 100000);
	raw.fails_at_end = true;
	ahead = lag_ahead_open(&raw.base, &err);
	assert_non_null(ahead);
	while ((last = ahead->read(ahead, some, sizeof(some), &err)) > 0)
		n += (size_t)last;
	assert_int_equal(last, -1);
	assert_int_equal(n, n_text);
	assert_string_equal(err.text, "the disk is gone");
	ahead->close(ahead);
	/* Closed while the thread has much more to give. */
	for (size_t read_n = 0; read_n < 6; read_n++) {
		raw = open_memory(text, n_text, 100000);
		ahead = lag_ahead_open(&raw.base, &err);
		assert_non_null(ahead);
		for (size_t i = 0; i < read_n; i++)
			assert_true(ahead->read(ahead, some, sizeof(some), &err) > 0);
		ahead->close(ahead);
	}
	free(packed);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_of_all_sizes_come_out_whole),
		cmocka_unit_test(a_cut_gives_what_came_before),
		cmocka_unit_test(damage_is_told_and_ends_it),
		cmocka_unit_test(errors_below_arrive_and_ends_come_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
