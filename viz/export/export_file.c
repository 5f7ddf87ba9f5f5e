/* SPDX-License-Identifier: Apache-2.0 */
/* Where an export goes: a file that appears when it is whole, or standard output or a device; through
 * gzip when the name asks for it. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/outfile.h"
#include "viz/export/export.h"
#include "viz/export/export_gzip.h"

struct lag_export_file {
	struct lag_outfile out;
	struct lag_gzip_out *gz; /* NULL: plain */
};

static enum lag_status write_out(struct lag_export_out *out, const char *bytes, size_t n,
				 struct lag_err *err)
{
	struct lag_export_file *f = out->state;

	return f->gz ? lag_gzip_out_write(f->gz, bytes, n, err)
		     : lag_outfile_write(&f->out, bytes, n, err);
}

enum lag_status lag_export_file_open(const char *path, bool force, struct lag_export_file **file,
				     struct lag_export_out *out, struct lag_err *err)
{
	struct lag_export_file *f = calloc(1, sizeof(*f));
	size_t n = strlen(path);
	enum lag_status st, closed;

	*file = NULL;
	if (!f)
		return lag_err_set(err, LAG_ERR_SYSTEM, "out of memory");
	st = lag_outfile_open(&f->out, path, force, err);
	if (!lag_failed(st) && n > 3 && strcmp(path + n - 3, ".gz") == 0) {
		f->gz = lag_gzip_out_open(&f->out, err);
		if (!f->gz) {
			st = LAG_ERR_SYSTEM;
			closed = lag_outfile_close(&f->out, false, NULL);
			if (lag_failed(closed)) {
				st = lag_err_set(
					err, LAG_ERR_SYSTEM,
					"no memory to compress, nor could the file be closed");
			}
		}
	}
	if (lag_failed(st)) {
		free(f);
		return st;
	}
	*out = (struct lag_export_out){ .write = write_out, .state = f };
	*file = f;
	return LAG_OK;
}

unsigned lag_export_file_cleared(const struct lag_export_file *f)
{
	return f->out.n_cleared;
}

enum lag_status lag_export_file_close(struct lag_export_file *f, bool keep, struct lag_err *err)
{
	enum lag_status st = LAG_OK, closed;

	if (f->gz)
		st = lag_gzip_out_close(f->gz, keep, err);
	closed = lag_outfile_close(&f->out, keep && !lag_failed(st), lag_failed(st) ? NULL : err);
	free(f);
	return lag_failed(st) ? st : closed;
}
