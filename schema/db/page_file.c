/* SPDX-License-Identifier: Apache-2.0 */
/* Page numbers given out and pages written. */
#include "schema/db/page_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/io.h"
#include "schema/db/page.h"

/* The database header at the file's beginning. */
#define HEADER_BYTES  100
#define AT_PAGE_SIZE  16
#define AT_RESERVED   20 /* bytes at the end of each page for others */
#define AT_CHANGES    24
#define AT_PAGES      28
#define AT_FORMAT     44 /* 4: the integers 0 and 1 take no room in a record */
#define AT_VALID_FOR  92 /* the change counter for which the page count holds */
#define LOCK_BYTE     0x40000000u
#define PAGES_MAX     0xfffffffeu
#define SCHEMA_FORMAT 4
static const char magic[16] = "SQLite format 3";

static enum lag_status read_header(const struct lag_page_file *file, uint8_t *header,
				   struct lag_err *err)
{
	ssize_t n = lag_io_read_at(file->fd, header, HEADER_BYTES, 0);

	if (n < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot read the database header");
	if (n < HEADER_BYTES || memcmp(header, magic, sizeof(magic)) != 0)
		return lag_err_set(err, LAG_ERR_INPUT, "not an SQLite file");
	return LAG_OK;
}

static enum lag_status check_header(struct lag_page_file *file, struct lag_err *err)
{
	uint8_t header[HEADER_BYTES];
	enum lag_status st = read_header(file, header, err);
	struct stat sb;

	if (st != LAG_OK)
		return st;
	if (fstat(file->fd, &sb) != 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot see the database's size");
	file->page_size = lag_page_u16(header + AT_PAGE_SIZE);
	if (file->page_size < LAG_PAGE_SIZE_MIN || file->page_size > LAG_PAGE_SIZE_MAX ||
	    (file->page_size & (file->page_size - 1)) || header[AT_RESERVED] ||
	    lag_page_u32(header + AT_FORMAT) != SCHEMA_FORMAT)
		return lag_err_set(err, LAG_ERR_INPUT, "an SQLite file of an unexpected make");
	if (sb.st_size % file->page_size ||
	    sb.st_size / file->page_size != lag_page_u32(header + AT_PAGES))
		return lag_err_set(err, LAG_ERR_INPUT, "an SQLite file of no whole pages");
	file->lock_page = LOCK_BYTE / file->page_size + 1;
	atomic_store(&file->next, lag_page_u32(header + AT_PAGES) + 1);
	return LAG_OK;
}

enum lag_status lag_page_file_open(struct lag_page_file *file, const char *path,
				   struct lag_err *err)
{
	enum lag_status st;

	file->fd = open(path, O_RDWR | O_CLOEXEC);
	if (file->fd < 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "%s", path);
	st = check_header(file, err);
	if (st == LAG_OK)
		return LAG_OK;
	lag_page_file_close(file);
	return lag_err_wrap(err, "%s", path);
}

void lag_page_file_close(struct lag_page_file *file)
{
	if (file->fd >= 0)
		(void)close(file->fd);
	file->fd = -1;
}

static enum lag_status write_at(const struct lag_page_file *file, const uint8_t *bytes, size_t n,
				uint64_t at, struct lag_err *err)
{
	if (!lag_io_write_at(file->fd, bytes, n, at))
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot write the trace");
	return LAG_OK;
}

/* Up to n page numbers in a row; 0 = no more. */
static uint32_t take(struct lag_page_file *file, uint32_t n, uint32_t *first)
{
	uint32_t next = atomic_load(&file->next), got;

	do {
		*first = next == file->lock_page ? next + 1 : next;
		got = n;
		if (*first < file->lock_page && got > file->lock_page - *first)
			got = file->lock_page - *first;
		if (got > PAGES_MAX - *first)
			return 0;
	} while (!atomic_compare_exchange_weak(&file->next, &next, *first + got));
	return got;
}

enum lag_status lag_page_file_append(struct lag_page_file *file, const uint8_t *pages, uint32_t n,
				     uint32_t *numbers, struct lag_err *err)
{
	enum lag_status st = LAG_OK;

	while (n && st == LAG_OK) {
		uint32_t first, got = take(file, n, &first);

		if (!got)
			return lag_err_set(err, LAG_ERR_LIMIT, "more pages than SQLite allows");
		st = write_at(file, pages, (size_t)got * file->page_size,
			      (uint64_t)(first - 1) * file->page_size, err);
		for (uint32_t i = 0; i < got; i++)
			*numbers++ = first + i;
		pages += (size_t)got * file->page_size;
		n -= got;
	}
	return st;
}

enum lag_status lag_page_file_put(struct lag_page_file *file, uint32_t number, const uint8_t *page,
				  struct lag_err *err)
{
	return write_at(file, page, file->page_size, (uint64_t)(number - 1) * file->page_size, err);
}

enum lag_status lag_page_file_finish(struct lag_page_file *file, struct lag_err *err)
{
	uint8_t header[HEADER_BYTES];
	enum lag_status st = read_header(file, header, err);
	uint32_t changes;

	if (st != LAG_OK)
		return st;
	changes = lag_page_u32(header + AT_CHANGES) + 1;
	lag_page_put_u32(header + AT_CHANGES, changes);
	lag_page_put_u32(header + AT_VALID_FOR, changes);
	lag_page_put_u32(header + AT_PAGES, atomic_load(&file->next) - 1);
	st = write_at(file, header, HEADER_BYTES, 0, err);
	lag_page_file_close(file);
	return st;
}
