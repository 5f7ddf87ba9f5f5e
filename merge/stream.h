/* SPDX-License-Identifier: Apache-2.0 */
/* Layers of byte streams between a file and its importer: inflating, and reading ahead on a thread. */
#ifndef MERGE_STREAM_H
#define MERGE_STREAM_H

#include "merge/source.h"

static inline bool lag_is_gzip(const uint8_t *head, size_t n)
{
	return n >= 3 && head[0] == 0x1f && head[1] == 0x8b && head[2] == 8;
}

/* What is inside raw, gzip of one or several members. Data that are corrupt or end early end the stream
 * there, with `damage` set: what came before is good. raw and name are borrowed until the stream is
 * closed, which frees it. NULL without memory. */
struct lag_stream *lag_gzip_open(struct lag_stream *raw, const char *name, struct lag_err *err);

/* The same bytes as raw, which from its 64th KiB on is read by a thread of its own into a bounded ring of
 * buffers. raw is borrowed until the stream is closed, which ends the thread and frees it. Where there
 * can be no thread, it reads on without. NULL without memory. */
struct lag_stream *lag_ahead_open(struct lag_stream *raw, struct lag_err *err);

#endif
