/* SPDX-License-Identifier: Apache-2.0 */
/* Runs, rank files, merged traces and imported files as one archive for the road, and back. Rank files
 * travel packed (merge/lagz.h) and are whole .lag files again when unpacked. */
#ifndef MERGE_PACK_H
#define MERGE_PACK_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/mem.h"

/* Called often; total 0 = not known. False ends the work (nothing half-made is left). */
struct lag_pack_watch {
	bool (*step)(void *state, uint64_t done, uint64_t total);
	void *state;
};

enum lag_pack_format {
	LAG_PACK_TAR_ZST = 0,
	LAG_PACK_ZIP,
};

struct lag_pack_opts {
	const char *const *inputs; /* files, directories (with all below them) */
	size_t n_inputs;
	const char *output; /* "-" = standard output */
	enum lag_pack_format format;
	bool force;                  /* overwrite output */
	struct lag_pack_watch watch; /* step may be NULL */
};

/* What happened, for the closing line. Zero-initialise; release when done. */
struct lag_pack_receipt {
	uint64_t n_files;
	uint64_t n_rank_files; /* of them, packed or restored by fields */
	uint64_t bytes_in,
		bytes_out;    /* pack: of files, of the archive; unpack: the other way round */
	unsigned n_cleared;   /* unfinished files of killed ones that were removed */
	uint64_t n_refused;   /* files or members left out, or not whole */
	struct lag_vec notes; /* char[LAG_ERR_TEXT_MAX], what people should know, at most 50 */
	uint64_t n_unsaid;    /* notes beyond these */
};

/* Members are named after the operand they come from ("run/host.1.lagz"), sorted, and say who owned
 * them to nobody: equal inputs give equal archives. A damaged rank file is stored as it is. LAG_WARN:
 * the archive is there, but n_refused files are not in it, or not whole: notes name them. */
enum lag_status lag_pack_run(const struct lag_pack_opts *opts, struct lag_pack_receipt *receipt,
			     struct lag_err *err) LAG_MUST_USE;

struct lag_unpack_limits {
	uint64_t n_members, n_bytes;
	uint64_t ratio; /* of bytes written to bytes read, once LAG_UNPACK_FREE bytes are written */
	uint64_t depth, path_bytes;
};

#define LAG_UNPACK_FREE ((uint64_t)256 << 20)
#define LAG_UNPACK_LIMITS                                                                      \
	{                                                                                      \
		.n_members = 1000000, .n_bytes = (uint64_t)1 << 38, .ratio = 200, .depth = 32, \
		.path_bytes = 1024                                                             \
	}

struct lag_unpack_opts {
	const char *input; /* "-" = standard input */
	const char *dir;   /* made where it is missing */
	bool force;        /* overwrite files */
	bool keep;         /* leave rank files packed */
	struct lag_unpack_limits limits;
	struct lag_pack_watch watch;
};

/* Writes nothing outside dir, follows no link on the way and makes none. LAG_WARN: something was refused
 * or damaged, notes say what; all else is in place. LAG_ERR_LIMIT: a limit stopped it, and what was
 * whole before is in place. LAG_ERR_INPUT: nothing in it could be read. */
enum lag_status lag_unpack_run(const struct lag_unpack_opts *opts, struct lag_pack_receipt *receipt,
			       struct lag_err *err) LAG_MUST_USE;

void lag_pack_note(struct lag_pack_receipt *receipt, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void lag_pack_receipt_release(struct lag_pack_receipt *receipt);

#endif
