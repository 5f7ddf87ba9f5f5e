/* SPDX-License-Identifier: Apache-2.0 */
/* An SQLite file to which pages are appended while SQLite has it not open. Several threads may append
 * and put at once; open, finish and close are for one. */
#ifndef SCHEMA_DB_PAGE_FILE_H
#define SCHEMA_DB_PAGE_FILE_H

#include <stdatomic.h>
#include <stdint.h>

#include "schema/base/err.h"

struct lag_page_file {
	int fd; /* -1 = closed */
	uint32_t page_size;
	uint32_t lock_page;    /* the page at 1 GiB that SQLite never uses */
	_Atomic uint32_t next; /* first page number nobody has */
};

/* path: a file of whole pages that SQLite made and has closed; LAG_ERR_INPUT where it is not. */
enum lag_status lag_page_file_open(struct lag_page_file *file, const char *path,
				   struct lag_err *err) LAG_MUST_USE;

/* Writes n pages at the end and tells their numbers, which ascend. */
enum lag_status lag_page_file_append(struct lag_page_file *file, const uint8_t *pages, uint32_t n,
				     uint32_t *numbers, struct lag_err *err) LAG_MUST_USE;

/* Writes over a page that is there: a root. */
enum lag_status lag_page_file_put(struct lag_page_file *file, uint32_t number, const uint8_t *page,
				  struct lag_err *err) LAG_MUST_USE;

/* Makes the file's header true and closes. */
enum lag_status lag_page_file_finish(struct lag_page_file *file, struct lag_err *err) LAG_MUST_USE;

void lag_page_file_close(struct lag_page_file *file);

#endif
