/* SPDX-License-Identifier: Apache-2.0 */
/* A file compressed on its way: one gzip member, which is all that some viewers read, made and written by
 * a thread of its own. */
#ifndef VIZ_EXPORT_EXPORT_GZIP_H
#define VIZ_EXPORT_EXPORT_GZIP_H

#include "schema/base/outfile.h"

struct lag_gzip_out;

/* `to` is borrowed and nobody else's until closed. NULL without memory. Where there can be no thread, the
 * caller's does the work. */
struct lag_gzip_out *lag_gzip_out_open(struct lag_outfile *to, struct lag_err *err);

/* Copies the bytes. What could not be written of earlier ones is this one's error; after an error, only
 * close. */
enum lag_status lag_gzip_out_write(struct lag_gzip_out *gz, const char *bytes, size_t n,
				   struct lag_err *err) LAG_MUST_USE;

/* Waits until all is written (the end too, when it is to be kept), and frees it. LAG_ERR_SYSTEM: some was
 * not written. */
enum lag_status lag_gzip_out_close(struct lag_gzip_out *gz, bool keep,
				   struct lag_err *err) LAG_MUST_USE;

#endif
