/* SPDX-License-Identifier: Apache-2.0 */
/* The one way errors travel: a graded status that must be looked at, and a caller-owned text that
 * gains context on its way up ("rank 7: host3.4711.lag: chunk at 0x1f00: checksum differs"). */
#ifndef SCHEMA_BASE_ERR_H
#define SCHEMA_BASE_ERR_H

#include <stdbool.h>

enum lag_status {
	LAG_OK = 0,
	LAG_END = 1,         /* nothing more to read; not an error */
	LAG_WARN = 2,        /* usable, but something was skipped and counted */
	LAG_ERR_INPUT = -1,  /* a file or value given to us is unusable */
	LAG_ERR_SYSTEM = -2, /* the machine refused: memory, disk, permission */
	LAG_ERR_LIMIT = -3,  /* a stated maximum was exceeded */
	LAG_ERR_USAGE = -4,  /* the caller asked for something that does not exist */
};

#define LAG_MUST_USE     __attribute__((warn_unused_result))
#define LAG_ERR_TEXT_MAX 512

struct lag_err {
	enum lag_status status;
	char text[LAG_ERR_TEXT_MAX];
};

/* Sets the text and returns `status`, so that a failing function ends in one line. err may be NULL. */
enum lag_status lag_err_set(struct lag_err *err, enum lag_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Like lag_err_set, and appends ": " and the text of errno. */
enum lag_status lag_err_errno(struct lag_err *err, enum lag_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " before the text; returns err's status. */
enum lag_status lag_err_wrap(struct lag_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool lag_failed(enum lag_status status)
{
	return status < 0;
}

#endif
