/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators in words. */
#include "viz/model/comm_text.h"

#define MEMBERS_SHOWN 16

void lag_comm_members(const struct lag_trace *t, size_t at, struct lag_buf *out)
{
	const struct lag_comm *comm = &t->comms[at];
	uint32_t i = 0, pieces = 0;

	lag_buf_clear(out);
	while (i < comm->n_members) {
		const struct lag_member *m = &t->members[comm->first_member + i];
		uint32_t run = 1;

		while (m->r >= 0 && i + run < comm->n_members && m[run].r >= 0 &&
		       t->ranks[m[run].r].rank == t->ranks[m->r].rank + run)
			run++;
		if (pieces++)
			lag_buf_putc(out, ',');
		if (pieces > MEMBERS_SHOWN) {
			lag_buf_puts(out, "...");
			return;
		}
		if (m->r < 0) {
			lag_buf_putc(out, '?');
		} else if (run > 2) {
			lag_buf_printf(out, "%lld-%lld", (long long)t->ranks[m->r].rank,
				       (long long)t->ranks[m[run - 1].r].rank);
		} else {
			lag_buf_printf(out, "%lld", (long long)t->ranks[m->r].rank);
		}
		i += run > 2 ? run : 1;
	}
}

void lag_comm_label(const struct lag_trace *t, size_t at, struct lag_buf *out)
{
	const struct lag_comm *comm = &t->comms[at];

	lag_buf_clear(out);
	if (comm->name[0]) {
		lag_buf_puts(out, comm->name);
	} else if (comm->hash != LAG_NONE) {
		lag_buf_printf(out, "%016llx", (unsigned long long)comm->hash);
	} else {
		lag_buf_printf(out, "#%zu", at);
	}
}
