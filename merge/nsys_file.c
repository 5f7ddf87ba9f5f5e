/* SPDX-License-Identifier: Apache-2.0 */
/* The file behind an Nsight Systems input. SQLite reads files only, so that a member of an archive or a
 * compressed database is spooled to disk first. */
#include "merge/nsys_file.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "schema/db/foreign.h"

#define HEAD_N    512
#define SPOOL_MAX ((uint64_t)1 << 38)

struct format {
	const char *magic, *what;
};

static const struct format others[] = {
	{ "NVIDIA Tegra Profiler Report", "a report of Nsight Systems" },
	{ "PAR1", "a Parquet table (of Nsight Systems?)" },
	{ "ARROW1", "an Arrow table (of Nsight Systems?)" },
	{ "\x89HDF\r\n\x1a\n", "an HDF5 file (of Nsight Systems?)" },
};

static const struct format *other_format(const uint8_t *head, size_t n)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		size_t m = strlen(others[i].magic);

		if (n >= m && memcmp(head, others[i].magic, m) == 0)
			return &others[i];
	}
	return NULL;
}

bool lag_nsys_file_probe(const uint8_t *head, size_t n)
{
	return lag_foreign_probe(head, n) || other_format(head, n);
}

static enum lag_status check_head(const uint8_t *head, size_t n, struct lag_err *err)
{
	const struct format *other = other_format(head, n);

	if (other) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "%s: `nsys export --type sqlite REPORT.nsys-rep` makes what "
				   "laggard reads",
				   other->what);
	}
	if (lag_foreign_is_ours(head, n)) {
		return lag_err_set(err, LAG_ERR_INPUT,
				   "merged by laggard already: `laggard report` and `laggard tui` "
				   "show it, once an archive that it lies in is unpacked "
				   "(`laggard unpack`)");
	}
	if (!lag_foreign_probe(head, n))
		return lag_err_set(err, LAG_ERR_INPUT, "no SQLite database");
	return LAG_OK;
}

static bool is_on_disk(const struct lag_input *in)
{
	struct stat sb;

	return in->bytes && stat(in->path, &sb) == 0 && S_ISREG(sb.st_mode) &&
	       (uint64_t)sb.st_size == in->n;
}

/* The rest of the input after the n bytes of its head. */
static enum lag_status spool(struct lag_outfile *to, struct lag_input *in, const uint8_t *head,
			     size_t n, struct lag_err *err)
{
	enum lag_status st = lag_outfile_write(to, head, n, err);
	uint64_t total = n;
	uint8_t buf[65536];
	long got = 1;

	while (st == LAG_OK && (got = in->read(in, buf, sizeof(buf), err)) > 0) {
		total += (uint64_t)got;
		if (total > SPOOL_MAX)
			return lag_err_set(err, LAG_ERR_LIMIT, "unpacks to more than 256 GiB");
		st = lag_outfile_write(to, buf, (size_t)got, err);
	}
	if (got < 0)
		return err && lag_failed(err->status) ? err->status : LAG_ERR_INPUT;
	return st;
}

static enum lag_status make_temporary(struct lag_nsys_file *file, struct lag_input *in,
				      const uint8_t *head, size_t n, struct lag_err *err)
{
	char path[4096];
	enum lag_status st;

	(void)snprintf(path, sizeof(path), "%s/laggard-nsys", lag_outfile_tmp());
	st = lag_outfile_make(&file->temporary, path, err);
	if (st == LAG_OK)
		st = spool(&file->temporary, in, head, n, err);
	file->path = file->temporary.partial;
	return st;
}

enum lag_status lag_nsys_file_open(struct lag_nsys_file *file, struct lag_input *in,
				   struct lag_err *err)
{
	uint8_t head[HEAD_N];
	enum lag_status st;
	size_t n = 0;

	*file = (struct lag_nsys_file){ .path = in->path, .temporary = { .fd = -1, .lock = -1 } };
	while (n < sizeof(head)) {
		long got = in->read(in, head + n, sizeof(head) - n, err);

		if (got < 0)
			return err && lag_failed(err->status) ? err->status : LAG_ERR_INPUT;
		if (!got)
			break;
		n += (size_t)got;
	}
	st = check_head(head, n, err);
	if (st != LAG_OK || is_on_disk(in))
		return st;
	return make_temporary(file, in, head, n, err);
}

void lag_nsys_file_close(struct lag_nsys_file *file)
{
	struct lag_outfile *t = &file->temporary;

	/* Nothing can come of it that matters: it was read already. */
	if (t->partial && lag_failed(lag_outfile_close(t, false, NULL)))
		file->path = NULL;
}
