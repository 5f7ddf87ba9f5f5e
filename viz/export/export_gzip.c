/* SPDX-License-Identifier: Apache-2.0 */
/* One gzip member from blocks of bytes, at level 1 by isa-l or zlib: compressed and written by a thread of
 * its own, through a bounded ring of buffers. The first failure ends the thread's work and comes back with
 * a later block. */
#include "viz/export/export_gzip.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#ifdef LAG_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

#define RING_BUFFER  ((size_t)1 << 18)
#define RING_BUFFERS 8u
#define OUT_BUFFER   ((size_t)1 << 18)

struct lag_gzip_out {
	struct lag_outfile *to; /* borrowed; the thread's while that runs */
#ifdef LAG_HAVE_ISAL
	struct isal_zstream z;
	_Alignas(16) uint8_t work[ISAL_DEF_LVL1_DEFAULT];
#else
	z_stream z;
#endif
	uint8_t out[OUT_BUFFER];
	char in[RING_BUFFERS][RING_BUFFER];
	size_t n[RING_BUFFERS]; /* block i of the sequence is at i % RING_BUFFERS */
	pthread_t thread;
	bool threaded;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* Under the lock. */
	uint64_t n_filled, n_emptied;
	bool ended; /* no further block comes */
	bool drop;  /* nor is what came wanted */
	enum lag_status status;
	struct lag_err err;
};

enum outcome {
	DEFLATE_MORE, /* the room is full */
	DEFLATE_DONE, /* all was taken; at the end: all was given */
	DEFLATE_FAILED
};

#ifdef LAG_HAVE_ISAL

static bool deflate_init(struct lag_gzip_out *gz)
{
	isal_deflate_init(&gz->z);
	gz->z.gzip_flag = IGZIP_GZIP;
	gz->z.level = 1;
	gz->z.level_buf = gz->work;
	gz->z.level_buf_size = sizeof(gz->work);
	return true;
}

static void deflate_done(struct lag_gzip_out *gz)
{
	(void)gz;
}

static void deflate_take(struct lag_gzip_out *gz, char *bytes, size_t n)
{
	gz->z.next_in = (uint8_t *)bytes;
	gz->z.avail_in = (uint32_t)n;
}

static enum outcome deflate_some(struct lag_gzip_out *gz, bool end, size_t *n)
{
	gz->z.next_out = gz->out;
	gz->z.avail_out = OUT_BUFFER;
	gz->z.end_of_stream = end;
	if (isal_deflate(&gz->z) != COMP_OK)
		return DEFLATE_FAILED;
	*n = OUT_BUFFER - gz->z.avail_out;
	return (end ? gz->z.internal_state.state == ZSTATE_END : gz->z.avail_out > 0)
		       ? DEFLATE_DONE
		       : DEFLATE_MORE;
}

#else

static bool deflate_init(struct lag_gzip_out *gz)
{
	return deflateInit2(&gz->z, 1, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK;
}

static void deflate_done(struct lag_gzip_out *gz)
{
	(void)deflateEnd(&gz->z);
}

static void deflate_take(struct lag_gzip_out *gz, char *bytes, size_t n)
{
	gz->z.next_in = (Bytef *)bytes;
	gz->z.avail_in = (uInt)n;
}

static enum outcome deflate_some(struct lag_gzip_out *gz, bool end, size_t *n)
{
	int rc;

	gz->z.next_out = gz->out;
	gz->z.avail_out = OUT_BUFFER;
	rc = deflate(&gz->z, end ? Z_FINISH : Z_NO_FLUSH);
	*n = OUT_BUFFER - gz->z.avail_out;
	if (rc == Z_STREAM_ERROR)
		return DEFLATE_FAILED;
	return (end ? rc == Z_STREAM_END : gz->z.avail_out > 0) ? DEFLATE_DONE : DEFLATE_MORE;
}

#endif

static enum lag_status compress_block(struct lag_gzip_out *gz, char *bytes, size_t n, bool end,
				      struct lag_err *err)
{
	enum lag_status st = LAG_OK;
	enum outcome outcome = DEFLATE_MORE;

	deflate_take(gz, bytes, n);
	while (outcome == DEFLATE_MORE && !lag_failed(st)) {
		size_t n_out = 0;

		outcome = deflate_some(gz, end, &n_out);
		if (outcome == DEFLATE_FAILED) {
			st = lag_err_set(err, LAG_ERR_SYSTEM, "cannot compress %s", gz->to->name);
		} else {
			st = lag_outfile_write(gz->to, gz->out, n_out, err);
		}
	}
	return st;
}

static void *run(void *state)
{
	struct lag_gzip_out *gz = state;
	enum lag_status st = LAG_OK;
	bool end = false, drop;

	while (!end && !lag_failed(st)) {
		struct lag_err err = { 0 };
		uint64_t i;

		(void)pthread_mutex_lock(&gz->lock);
		while (gz->n_filled == gz->n_emptied && !gz->ended)
			(void)pthread_cond_wait(&gz->changed, &gz->lock);
		i = gz->n_emptied;
		end = gz->n_filled == i;
		drop = gz->drop;
		(void)pthread_mutex_unlock(&gz->lock);
		if (drop)
			break;
		st = compress_block(gz, gz->in[i % RING_BUFFERS], end ? 0 : gz->n[i % RING_BUFFERS],
				    end, &err);
		(void)pthread_mutex_lock(&gz->lock);
		gz->n_emptied += !end;
		if (lag_failed(st)) {
			gz->status = st;
			gz->err = err;
		}
		(void)pthread_cond_signal(&gz->changed);
		(void)pthread_mutex_unlock(&gz->lock);
	}
	return NULL;
}

/* The next free buffer; NULL after a failure. */
static char *next_buffer(struct lag_gzip_out *gz, struct lag_err *err)
{
	char *buffer = NULL;

	(void)pthread_mutex_lock(&gz->lock);
	while (gz->n_filled - gz->n_emptied == RING_BUFFERS && !lag_failed(gz->status))
		(void)pthread_cond_wait(&gz->changed, &gz->lock);
	if (lag_failed(gz->status)) {
		*err = gz->err;
	} else {
		buffer = gz->in[gz->n_filled % RING_BUFFERS];
	}
	(void)pthread_mutex_unlock(&gz->lock);
	return buffer;
}

enum lag_status lag_gzip_out_write(struct lag_gzip_out *gz, const char *bytes, size_t n,
				   struct lag_err *err)
{
	while (n) {
		size_t part = n < RING_BUFFER ? n : RING_BUFFER;
		char *buffer = gz->threaded ? next_buffer(gz, err) : gz->in[0];

		if (!buffer)
			return err->status;
		memcpy(buffer, bytes, part);
		bytes += part;
		n -= part;
		if (!gz->threaded) {
			enum lag_status st = compress_block(gz, buffer, part, false, err);

			if (lag_failed(st))
				return st;
			continue;
		}
		(void)pthread_mutex_lock(&gz->lock);
		gz->n[gz->n_filled % RING_BUFFERS] = part;
		gz->n_filled++;
		(void)pthread_cond_signal(&gz->changed);
		(void)pthread_mutex_unlock(&gz->lock);
	}
	return LAG_OK;
}

struct lag_gzip_out *lag_gzip_out_open(struct lag_outfile *to, struct lag_err *err)
{
	struct lag_gzip_out *gz = lag_calloc(1, sizeof(*gz));

	if (gz && !deflate_init(gz)) {
		free(gz);
		gz = NULL;
	}
	if (gz && pthread_mutex_init(&gz->lock, NULL) != 0) {
		deflate_done(gz);
		free(gz);
		gz = NULL;
	}
	if (!gz) {
		(void)lag_err_set(err, LAG_ERR_SYSTEM, "no memory to compress");
		return NULL;
	}
	(void)pthread_cond_init(&gz->changed, NULL);
	gz->to = to;
	gz->threaded = pthread_create(&gz->thread, NULL, run, gz) == 0;
	return gz;
}

enum lag_status lag_gzip_out_close(struct lag_gzip_out *gz, bool keep, struct lag_err *err)
{
	enum lag_status st;

	if (gz->threaded) {
		(void)pthread_mutex_lock(&gz->lock);
		gz->ended = true;
		gz->drop = !keep;
		(void)pthread_cond_signal(&gz->changed);
		(void)pthread_mutex_unlock(&gz->lock);
		(void)pthread_join(gz->thread, NULL);
		st = gz->status;
		if (lag_failed(st) && err)
			*err = gz->err;
	} else {
		st = keep ? compress_block(gz, gz->in[0], 0, true, err) : LAG_OK;
	}
	(void)pthread_cond_destroy(&gz->changed);
	(void)pthread_mutex_destroy(&gz->lock);
	deflate_done(gz);
	free(gz);
	return st;
}
