/* SPDX-License-Identifier: Apache-2.0 */
/* Any database in place of the trace that late ranks are added to: it is refused with a message, or what was
 * loaded refers to nothing that is not there and goes through matching and alignment. */
#include <stdlib.h>
#include <unistd.h>

#include "merge/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void check(struct lag_merge *m)
{
	for (size_t i = 0; i < m->procs.n; i++) {
		struct lag_proc *p = LAG_PROC_AT(m, i);

		require(p->host < m->hosts.n && p->source < m->sources.n);
		require(p->op_links.n == LAG_PART_COUNT(&p->part, op));
		for (size_t k = 0; k < p->op_links.n; k++) {
			const struct lag_op_link *link = LAG_OP_LINK_AT(p, k);

			require(link->comm < m->comms.n && link->instance_ref <= m->instances.n);
			require(link->launch_ref && link->launch_ref <= p->launches.n);
		}
	}
	for (size_t i = 0; i < m->instances.n; i++)
		require(LAG_INSTANCE_AT(m, i)->comm < m->comms.n);
}

static enum lag_status go_on(struct lag_merge *m, struct lag_err *err)
{
	enum lag_status st = lag_merge_identify(m, err);

	if (st == LAG_OK)
		st = lag_merge_devices(m, err);
	if (st == LAG_OK)
		st = lag_merge_comms(m, err);
	if (st == LAG_OK)
		st = lag_merge_count(m, err);
	if (st == LAG_OK)
		st = lag_merge_match(m, err);
	if (st == LAG_OK)
		st = lag_merge_align(m, err);
	if (st == LAG_OK)
		lag_merge_waits(m);
	return st == LAG_OK ? lag_merge_trust(m, err) : st;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const struct lag_merge_opts opts = { .n_threads = 1, .append = "fuzz.db" };
	char path[] = "/tmp/laggard-fuzz-XXXXXX";
	int fd = mkstemp(path);
	struct lag_err err = { 0 };
	struct lag_merge m;
	enum lag_status st;

	require(fd >= 0 && write(fd, data, n) == (ssize_t)n);
	st = lag_merge_init(&m, &opts, &err);
	if (st == LAG_OK)
		st = lag_merge_open_spill(&m, "/tmp", &err);
	if (st == LAG_OK)
		st = lag_append_load(&m, path, &err);
	if (st == LAG_OK) {
		check(&m);
		st = go_on(&m, &err);
	}
	require(!lag_failed(st) || err.text[0]);
	lag_merge_release(&m);
	(void)unlink(path);
	(void)close(fd);
	return 0;
}
