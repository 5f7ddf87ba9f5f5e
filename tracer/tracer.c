/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of recording; see tracer.h. Whoever enters first through one of the doors starts. */
#include "tracer/tracer.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/parse.h"
#include "schema/env.h"
#include "tracer/config.h"
#include "tracer/self.h"
#include "tracer/spool.h"
#include "tracer/writer.h"

#define EXIT_WAIT_MS 10000
#define YIELDS_MAX   100000

enum phase {
	DORMANT,
	STARTING,
	DECIDED, /* recording, ended, or not wanted: the guard tells */
};

static struct {
	_Atomic int phase;
	pid_t pid;
	struct lag_trace_file file;
	struct lag_self self;
} tracer;

static void file_name(char *out, size_t room)
{
	char host[sizeof(tracer.self.head.host)];

	memcpy(host, tracer.self.head.host, sizeof(host));
	for (char *p = host; *p; p++) {
		if (*p == '/' || *p < ' ')
			*p = '_';
	}
	(void)snprintf(out, room, "%s.%llu.%lld" LAG_TRACE_SUFFIX, host,
		       (unsigned long long)tracer.self.head.pid,
		       (long long)tracer.self.head.start_ns);
}

static void start(void)
{
	const struct lag_config *cfg = lag_config_get();
	struct lag_err err = { 0 };
	struct lag_thread *t;
	char name[128];

	if (!cfg->dir[0])
		return;
	lag_self_read(&tracer.self);
	/* A process whose rank is not known is in no list. */
	if (cfg->ranks[0] &&
	    (tracer.self.rank.rank == LAG_NONE || !lag_list_has(cfg->ranks, tracer.self.rank.rank)))
		return;
	if (!lag_guard_open()) {
		lag_config_debug("no MADV_WIPEONFORK: not recording");
		return;
	}
	file_name(name, sizeof(name));
	if (lag_failed(lag_spool_create(&tracer.file, name, &tracer.self.head, &err))) {
		lag_config_debug("%s", err.text);
		return;
	}
	tracer.file.max_bytes = cfg->max_bytes;
	if (!lag_sink_open(&tracer.file)) {
		lag_config_debug("no memory for the producers");
		return;
	}
	tracer.pid = getpid();
	lag_guard_set(true);
	t = lag_sink_enter(LAG_REC_process);
	if (t) {
		lag_self_write(&tracer.self, &t->prod);
		lag_sink_leave(t);
	}
	if (!lag_writer_start(&tracer.file)) {
		lag_guard_set(false);
		lag_config_debug("cannot create the writer thread");
		return;
	}
	(void)atexit(lag_tracer_at_exit);
}

bool lag_tracer_start(void)
{
	int expected = DORMANT, saved = errno;

	if (atomic_load_explicit(&tracer.phase, memory_order_acquire) == DECIDED)
		return lag_guard_on();
	if (atomic_compare_exchange_strong(&tracer.phase, &expected, STARTING)) {
		start();
		errno = saved;
		atomic_store_explicit(&tracer.phase, DECIDED, memory_order_release);
	}
	/* A communicator must not be missed because another thread is just opening the file. Not for
	 * ever: in a child forked at this very moment that thread does not exist. */
	for (int i = 0; i < YIELDS_MAX && atomic_load(&tracer.phase) == STARTING; i++)
		(void)sched_yield();
	return lag_guard_on();
}

void lag_tracer_finish(uint32_t timeout_ms)
{
	/* A vfork child shares our memory, and with it the guard. */
	if (lag_guard_on() && getpid() == tracer.pid)
		lag_writer_stop(timeout_ms);
}

void lag_tracer_at_exit(void)
{
	lag_tracer_finish(EXIT_WAIT_MS);
}
