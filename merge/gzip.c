/* SPDX-License-Identifier: Apache-2.0 */
/* gzip, also of several members one after the other: by isa-l, which is three times as fast, or zlib. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge/stream.h"

#ifdef LAG_HAVE_ISAL
#include <isa-l/igzip_lib.h>
#else
#include <zlib.h>
#endif

#define GZIP_BUFFER   ((size_t)1 << 17)
#define GZIP_HEADROOM 16 /* for what the inflater took too much of */

struct gzip {
	struct lag_stream base;
	struct lag_stream *raw; /* borrowed */
	const char *name;
	uint64_t offset; /* bytes taken from raw */
	bool at_end, inside;
	char damage[LAG_ERR_TEXT_MAX];
#ifdef LAG_HAVE_ISAL
	struct inflate_state z;
#else
	z_stream z;
#endif
	uint8_t in[GZIP_HEADROOM + GZIP_BUFFER];
};

enum outcome {
	INFLATE_MORE,
	INFLATE_MEMBER_ENDS,
	INFLATE_CORRUPT
};

#ifdef LAG_HAVE_ISAL

static bool inflate_init(struct gzip *gz)
{
	isal_inflate_init(&gz->z);
	gz->z.crc_flag = ISAL_GZIP;
	return true;
}

static void inflate_done(struct gzip *gz)
{
	(void)gz;
}

static bool inflate_restart(struct gzip *gz)
{
	isal_inflate_reset(&gz->z);
	gz->z.crc_flag = ISAL_GZIP;
	return true;
}

static enum outcome inflate_some(struct gzip *gz, const char **why)
{
	static const char *const reasons[] = { "",
					       "invalid block",
					       "invalid symbol",
					       "invalid distance",
					       "invalid header",
					       "unknown method",
					       "checksum differs" };
	int rc = isal_inflate(&gz->z);

	if (rc < 0) {
		*why = rc >= -6 ? reasons[-rc] : "cannot be inflated";
		return INFLATE_CORRUPT;
	}
	if (gz->z.block_state != ISAL_BLOCK_FINISH)
		return INFLATE_MORE;
	/* Whole bytes behind the member that were taken already go back in front. */
	for (; gz->z.read_in_length >= 8; gz->z.read_in_length -= 8) {
		*--gz->z.next_in = (uint8_t)(gz->z.read_in >> (gz->z.read_in_length - 8));
		gz->z.avail_in++;
	}
	return INFLATE_MEMBER_ENDS;
}

#else

static bool inflate_init(struct gzip *gz)
{
	return inflateInit2(&gz->z, 15 + 16) == Z_OK;
}

static void inflate_done(struct gzip *gz)
{
	(void)inflateEnd(&gz->z);
}

static bool inflate_restart(struct gzip *gz)
{
	return inflateReset(&gz->z) == Z_OK;
}

static enum outcome inflate_some(struct gzip *gz, const char **why)
{
	int rc = inflate(&gz->z, Z_NO_FLUSH);

	if (rc == Z_STREAM_END)
		return INFLATE_MEMBER_ENDS;
	*why = gz->z.msg ? gz->z.msg : "cannot be inflated";
	return rc == Z_OK || rc == Z_BUF_ERROR ? INFLATE_MORE : INFLATE_CORRUPT;
}

#endif

/* 1: input is there; 0: the raw stream has ended; -1: error. */
static int refill(struct gzip *gz, struct lag_err *err)
{
	long n;

	if (gz->z.avail_in)
		return 1;
	n = gz->raw->read(gz->raw, gz->in + GZIP_HEADROOM, GZIP_BUFFER, err);
	if (n <= 0)
		return (int)n;
	gz->offset += (uint64_t)n;
	gz->z.next_in = gz->in + GZIP_HEADROOM;
	gz->z.avail_in = (uint32_t)n;
	return 1;
}

static void set_damage(struct gzip *gz, const char *what)
{
	gz->at_end = true;
	(void)snprintf(gz->damage, sizeof(gz->damage),
		       "the gzip data are damaged (%s) at byte %llu: what came before was used",
		       what, (unsigned long long)(gz->offset - gz->z.avail_in));
	gz->base.damage = gz->damage;
}

/* After a member: another one, zero padding, or the end. */
static int next_member(struct gzip *gz, struct lag_err *err)
{
	int more;

	while ((more = refill(gz, err)) == 1 && *gz->z.next_in == 0) {
		gz->z.next_in++;
		gz->z.avail_in--;
	}
	gz->inside = false;
	gz->at_end = more != 1;
	if (more == 1 && !inflate_restart(gz)) {
		(void)lag_err_set(err, LAG_ERR_SYSTEM, "%s: inflate", gz->name);
		return -1;
	}
	return more;
}

static long gzip_read(struct lag_stream *st, void *buf, size_t room, struct lag_err *err)
{
	struct gzip *gz = (struct gzip *)st;
	uint32_t want = room > 1u << 30 ? 1u << 30 : (uint32_t)room;

	gz->z.next_out = buf;
	gz->z.avail_out = want;
	while (gz->z.avail_out == want && !gz->at_end) {
		const char *why = "";
		enum outcome outcome;
		int more = refill(gz, err);

		if (more < 0)
			return -1;
		outcome = INFLATE_MORE;
		if (more || gz->inside)
			outcome = inflate_some(gz, &why);
		gz->inside = true;
		if (outcome == INFLATE_MEMBER_ENDS) {
			if (next_member(gz, err) < 0)
				return -1;
		} else if (outcome == INFLATE_CORRUPT) {
			set_damage(gz, why);
		} else if (!more && gz->z.avail_out == want) {
			set_damage(gz, "cut off");
		}
	}
	return (long)(want - gz->z.avail_out);
}

static void gzip_close(struct lag_stream *st)
{
	inflate_done((struct gzip *)st);
	free(st);
}

struct lag_stream *lag_gzip_open(struct lag_stream *raw, const char *name, struct lag_err *err)
{
	struct gzip *gz = lag_calloc(1, sizeof(*gz));

	if (gz && inflate_init(gz)) {
		gz->base.read = gzip_read;
		gz->base.close = gzip_close;
		gz->raw = raw;
		gz->name = name;
		return &gz->base;
	}
	free(gz);
	(void)lag_err_set(err, LAG_ERR_SYSTEM, "%s: no memory to inflate", name);
	return NULL;
}
