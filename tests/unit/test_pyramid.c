/* SPDX-License-Identifier: Apache-2.0 */
/* The pyramid against brute force: random events through the merge's tracks into a database, then any
 * window of it against the same sum over the events; and blobs that no merge wrote. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "merge/lod_track.h"
#include "schema/base/mem.h"
#include "schema/db/db_write.h"
#include "tests/unit/unit.h"
#include "viz/model/pyramid.h"

#define T0       INT64_C(1790000000000000000)
#define N_EVENTS 3000
#define SHIFT    13
#define TOP      25
#define N_LEVELS (1 + (TOP - SHIFT) / LAG_PYRAMID_STEP)
#define WIDTH    64

static uint64_t seed;

static int64_t draw(int64_t below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)((seed >> 33) % (uint64_t)below);
}

struct event {
	int64_t start_ns, end_ns;
	enum lag_pyramid_class class;
};

struct fixture {
	char path[64];
	struct event events[N_EVENTS];
	int64_t first_ns, last_ns;
	struct lag_db_writer *writer;
	struct lag_db *db;
	struct lag_pyramid *pyramid;
	int64_t last_segment[64]; /* by shift */
};

static bool take(void *state, uint32_t lane, unsigned shift, int64_t segment,
		 const struct lag_buf *packed)
{
	struct fixture *f = state;
	struct lag_err err = { 0 };
	struct lag_value row[] = { LAG_INT(shift), LAG_INT(segment), LAG_INT(lane),
				   LAG_BLOB(packed->text, (uint32_t)packed->n) };

	assert_true(segment > f->last_segment[shift]);
	f->last_segment[shift] = segment;
	return lag_db_insert(f->writer, LAG_TABLE_pyramid, row, 4, &err) == LAG_OK;
}

/* Bursts, idle gaps, events that touch, that overlap and that last for thousands of buckets. */
static void make_events(struct fixture *f)
{
	int64_t at = T0 - draw(1 << 20);

	for (int i = 0; i < N_EVENTS; i++) {
		int64_t gap = draw(8) == 0 ? draw(3000000) : draw(3) * draw(4000);
		int64_t length = draw(500) == 0 ? draw(1 << 26) : draw(20000);

		at += gap;
		f->events[i] = (struct event){ at, at + length,
					       (enum lag_pyramid_class)draw(LAG_PYRAMID_CLASSES) };
		at += draw(2) * length;
		f->last_ns = f->events[i].end_ns > f->last_ns ? f->events[i].end_ns : f->last_ns;
	}
	/* Starts that go back would be another order. */
	for (int i = N_EVENTS - 2; i >= 0; i--)
		assert_true(f->events[i].start_ns <= f->events[i + 1].start_ns);
	f->first_ns = f->events[0].start_ns;
}

static void build(struct fixture *f)
{
	struct lag_lod_level levels[N_LEVELS] = { 0 };
	uint64_t n_left = UINT64_MAX;
	struct lag_lod_track track = { .levels = levels,
				       .shift = SHIFT,
				       .n_levels = N_LEVELS,
				       .n_left = &n_left,
				       .lane = 1,
				       .take = take,
				       .state = f };

	for (int s = 0; s < 64; s++)
		f->last_segment[s] = INT64_MIN;
	lag_lod_track_init(&track);
	for (int i = 0; i < N_EVENTS; i++) {
		lag_lod_track_add(&track, f->events[i].class, f->events[i].start_ns,
				  f->events[i].end_ns);
	}
	lag_lod_track_end(&track);
	assert_false(track.failed);
	for (int l = 0; l < N_LEVELS; l++)
		lag_buf_release(&levels[l].packed);
}

static void open_writer(struct fixture *f)
{
	struct lag_err err = { 0 };
	int fd;

	(void)strcpy(f->path, "/tmp/laggard-pyramid-XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(lag_db_writer_open(f->path, NULL, &f->writer, &err), LAG_OK);
}

static void put_lane(struct fixture *f, const int64_t row[10])
{
	struct lag_err err = { 0 };

	assert_int_equal(lag_db_insert_ints(f->writer, LAG_TABLE_pyramid_lane, row, 10, &err),
			 LAG_OK);
}

static enum lag_status open_reader(struct fixture *f)
{
	struct lag_err err = { 0 };

	assert_int_equal(lag_db_writer_finish(f->writer, &err), LAG_OK);
	lag_db_writer_close(f->writer);
	f->writer = NULL;
	assert_int_equal(lag_db_open(f->path, &f->db, &err), LAG_OK);
	return lag_pyramid_open(f->db, &f->pyramid, &err);
}

static void release(struct fixture *f)
{
	lag_pyramid_close(f->pyramid);
	lag_db_close(f->db);
	(void)unlink(f->path);
	free(f);
}

static struct fixture *set_up(uint64_t s)
{
	struct fixture *f = lag_calloc(1, sizeof(*f));

	assert_non_null(f);
	seed = s;
	f->last_ns = INT64_MIN;
	make_events(f);
	open_writer(f);
	build(f);
	put_lane(f, (int64_t[10]){ 1, 7, LAG_NONE, LAG_NONE, LAG_NONE, N_EVENTS, f->first_ns,
				   f->last_ns, SHIFT, TOP });
	assert_int_equal(open_reader(f), LAG_OK);
	return f;
}

/* By the definition: every moment counts for the first class of what runs then. */
static void brute(const struct fixture *f, int64_t t0, int64_t t1, struct lag_bucket *out)
{
	static struct event left[N_EVENTS];
	int64_t at = t0;

	*out = (struct lag_bucket){ 0 };
	size_t n = 0;

	for (int i = 0; i < N_EVENTS; i++) {
		const struct event *e = &f->events[i];

		out->n_events += e->start_ns >= t0 && e->start_ns < t1;
		if (e->start_ns < t1 && e->end_ns > t0)
			left[n++] = *e;
	}
	while (at < t1) {
		int64_t next = t1;
		int best = LAG_PYRAMID_CLASSES;

		for (size_t i = 0; i < n; i++) {
			if (left[i].start_ns > at) {
				next = left[i].start_ns < next ? left[i].start_ns : next;
			} else if (left[i].end_ns > at) {
				next = left[i].end_ns < next ? left[i].end_ns : next;
				best = (int)left[i].class < best ? (int)left[i].class : best;
			}
		}
		if (best < LAG_PYRAMID_CLASSES)
			out->ns[best] += next - at;
		at = next;
	}
}

static void check_near(const struct lag_bucket *got, const struct lag_bucket *want, int64_t most)
{
	for (int c = 0; c < LAG_PYRAMID_CLASSES; c++) {
		if (llabs(got->ns[c] - want->ns[c]) <= most)
			continue;
		fail_msg("class %d: %lld ns, not %lld", c, (long long)got->ns[c],
			 (long long)want->ns[c]);
	}
}

static void windows(void **state)
{
	struct lag_err err = { 0 };

	(void)state;
	for (uint64_t s = 1; s <= 4; s++) {
		struct fixture *f = set_up(s);
		size_t n;
		const struct lag_pyramid_lane *lane = lag_pyramid_rank(f->pyramid, 7, &n);
		int64_t span = f->last_ns - f->first_ns, bucket = INT64_C(1) << SHIFT;

		assert_non_null(lane);
		assert_int_equal(n, 1);
		for (int i = 0; i < 150; i++) {
			int64_t length = 1 + draw(i % 3 ? 1 + (span >> draw(12)) : 200000);
			int64_t t0 = f->first_ns - span / 8 + draw(span + span / 4);
			int64_t t1 = t0 + length;
			struct lag_bucket got = { 0 }, want;

			if (i % 2) { /* exact */
				t0 &= ~(bucket - 1);
				t1 = (t1 | (bucket - 1)) + 1;
			}
			brute(f, t0, t1, &want);
			assert_int_equal(lag_pyramid_between(f->pyramid, lane, t0, t1, &got, &err),
					 LAG_OK);
			check_near(&got, &want, i % 2 ? 0 : 2 * bucket);
			if (i % 2)
				assert_int_equal(got.n_events, want.n_events);
		}
		release(f);
	}
}

/* Each column is near the truth. */
static void check_columns(struct fixture *f, const struct lag_pyramid_lane *lane,
			  const int64_t edges[WIDTH + 1], int64_t most)
{
	struct lag_bucket got[WIDTH] = { 0 }, want;
	struct lag_err err = { 0 };

	assert_int_equal(lag_pyramid_columns(f->pyramid, lane, edges, WIDTH, got, &err), LAG_OK);
	for (int x = 0; x < WIDTH; x++) {
		brute(f, edges[x], edges[x + 1], &want);
		check_near(&got[x], &want, most);
	}
}

/* All of them together are all there is, wherever their edges are. */
static void check_whole(struct fixture *f, const struct lag_pyramid_lane *lane)
{
	struct lag_bucket got[WIDTH] = { 0 }, sum = { 0 }, want;
	int64_t edges[WIDTH + 1];
	struct lag_err err = { 0 };

	for (int x = 0; x < WIDTH; x++)
		edges[x] = f->first_ns + (f->last_ns - f->first_ns) / WIDTH * x - (x == 0);
	edges[WIDTH] = f->last_ns + 1;
	assert_int_equal(lag_pyramid_columns(f->pyramid, lane, edges, WIDTH, got, &err), LAG_OK);
	for (int x = 0; x < WIDTH; x++) {
		for (int c = 0; c < LAG_PYRAMID_CLASSES; c++)
			sum.ns[c] += got[x].ns[c];
		sum.n_events += got[x].n_events;
	}
	brute(f, edges[0], edges[WIDTH], &want);
	check_near(&sum, &want, 0);
	assert_int_equal(sum.n_events, N_EVENTS);
}

static void columns(void **state)
{
	(void)state;
	for (uint64_t s = 11; s <= 14; s++) {
		struct fixture *f = set_up(s);
		size_t n;
		const struct lag_pyramid_lane *lane = lag_pyramid_rank(f->pyramid, 7, &n);
		int64_t span = f->last_ns - f->first_ns, edges[WIDTH + 1];

		for (int i = 0; i < 14; i++) {
			int64_t column = 1 + (span >> draw(16)) / WIDTH, bucket = 1 << SHIFT;

			edges[0] = f->first_ns - span / 8 + draw(span);
			if (i % 2) { /* exact */
				column = INT64_C(1) << (SHIFT + draw(10));
				edges[0] &= -column;
			}
			for (int x = 1; x <= WIDTH; x++)
				edges[x] = edges[x - 1] + column;
			while (2 * bucket << LAG_PYRAMID_STEP <= column)
				bucket <<= LAG_PYRAMID_STEP;
			check_columns(f, lane, edges, i % 2 ? 0 : 2 * bucket);
		}
		check_whole(f, lane);
		release(f);
	}
}

static enum lag_status open_with(struct fixture *f, const int64_t row[10], const char *blob,
				 size_t n)
{
	struct lag_err err = { 0 };
	struct lag_value values[] = { LAG_INT(SHIFT), LAG_INT(0), LAG_INT(1),
				      LAG_BLOB(blob, (uint32_t)n) };

	open_writer(f);
	put_lane(f, row);
	assert_int_equal(lag_db_insert(f->writer, LAG_TABLE_pyramid, values, 4, &err), LAG_OK);
	return open_reader(f);
}

static void lanes_that_cannot_be(void **state)
{
	static const int64_t rows[][10] = {
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, 1000, SHIFT, SHIFT - 2 },
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, 1000, SHIFT + 1, TOP },
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, 1000, 3, TOP },
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, 1000, SHIFT, 61 },
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, INT64_MAX, SHIFT, TOP },
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, INT64_MIN + 1, 5, SHIFT, 53 },
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, INT64_C(1) << 40, SHIFT, SHIFT },
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 1000, 0, SHIFT, TOP },
		{ 1, 0, LAG_NONE, LAG_NONE, LAG_NONE, -5, 0, 1000, SHIFT, TOP },
		{ 1, 0, 0, 0, 7, 5, 0, 1000, SHIFT, TOP }, /* a stream of no rank */
		{ 0, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, 1000, SHIFT, TOP },
		{ 1, -1, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, 1000, SHIFT, TOP },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fixture *f = lag_calloc(1, sizeof(*f));

		assert_non_null(f);
		assert_int_equal(open_with(f, rows[i], "\1", 1), LAG_ERR_INPUT);
		release(f);
	}
}

static void blobs_that_cannot_be(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum lag_status want;
	} blobs[] = {
		{ "\x01", 1, LAG_OK },
		{ "\x45", 1, LAG_ERR_INPUT },             /* two classes all the time */
		{ "\x03", 1, LAG_ERR_INPUT },             /* a share that does not exist */
		{ "\x02", 1, LAG_ERR_INPUT },             /* its number is missing */
		{ "\x02\xff\xff\x7f", 4, LAG_ERR_INPUT }, /* more than the bucket */
		{ "\x02\x80\x40", 3, LAG_OK },            /* 8192: all of it */
		{ "\x02\x81\x40", 3, LAG_ERR_INPUT },     /* one more */
		{ "\xc0", 1, LAG_ERR_INPUT },
		{ "\xc0\x05", 2, LAG_OK },
		{ "\xc0\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, LAG_ERR_INPUT },
		{ "\x00", 1, LAG_ERR_INPUT },
		{ "\x00\xff\x01", 3, LAG_OK },            /* 256 empty ones */
		{ "\x00\x80\x02", 3, LAG_ERR_INPUT },     /* 257 */
		{ "\x00\xff\x01\x01", 4, LAG_ERR_INPUT }, /* and one behind them */
		{ "", 0, LAG_ERR_INPUT },
	};

	static const int64_t lane[10] = {
		1, 0, LAG_NONE, LAG_NONE, LAG_NONE, 5, 0, 1000, SHIFT, TOP
	};

	(void)state;
	for (size_t i = 0; i < sizeof(blobs) / sizeof(blobs[0]); i++) {
		struct fixture *f = lag_calloc(1, sizeof(*f));
		struct lag_bucket out = { 0 };
		struct lag_err err = { 0 };
		size_t n;

		assert_non_null(f);
		assert_int_equal(open_with(f, lane, blobs[i].bytes, blobs[i].n), LAG_OK);
		assert_int_equal(lag_pyramid_between(f->pyramid, lag_pyramid_lanes(f->pyramid, &n),
						     0, 8192, &out, &err),
				 blobs[i].want);
		release(f);
	}
}

static void traces_without(void **state)
{
	struct fixture *f = lag_calloc(1, sizeof(*f));

	(void)state;
	assert_non_null(f);
	open_writer(f);
	assert_int_equal(open_reader(f), LAG_END);
	release(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows),
		cmocka_unit_test(columns),
		cmocka_unit_test(lanes_that_cannot_be),
		cmocka_unit_test(blobs_that_cannot_be),
		cmocka_unit_test(traces_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
