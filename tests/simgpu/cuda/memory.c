/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory: host memory that is not touched until used, so that an 80 GB allocation costs
 * nothing, in a table that tells whose an address is. */
#include "tests/simgpu/cuda/engine.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAP_FROM 65536UL /* smaller ones come from malloc */

struct block {
	char *base;
	size_t bytes;
	int device;
};

static struct {
	pthread_mutex_t lock;
	struct block *v; /* by address */
	size_t n, cap;
	size_t used[SIM_MAX_DEVICES];
} mem = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Index of the first block whose base is above p. */
static size_t upper(const char *p)
{
	size_t lo = 0, hi = mem.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (mem.v[mid].base <= p) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return lo;
}

void *sim_mem_alloc(size_t bytes, int device)
{
	size_t size = bytes ? (bytes + 511) & ~(size_t)511 : 512;
	void *p = size < MAP_FROM ? aligned_alloc(512, size)
				  : mmap(NULL, size, PROT_READ | PROT_WRITE,
					 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (!p || p == MAP_FAILED) {
		return NULL;
	}
	pthread_mutex_lock(&mem.lock);
	if (mem.n == mem.cap) {
		mem.cap = mem.cap ? 2 * mem.cap : 64;
		mem.v = realloc(mem.v, mem.cap * sizeof *mem.v);
		if (!mem.v) {
			abort();
		}
	}
	size_t i = upper(p);
	memmove(&mem.v[i + 1], &mem.v[i], (mem.n - i) * sizeof *mem.v);
	mem.v[i] = (struct block){ p, size, device };
	mem.n++;
	if (device >= 0) {
		mem.used[device] += size;
	}
	pthread_mutex_unlock(&mem.lock);
	return p;
}

static bool find(const void *p, struct block *out)
{
	pthread_mutex_lock(&mem.lock);
	size_t i = upper(p);
	bool hit = i > 0 && (const char *)p < mem.v[i - 1].base + mem.v[i - 1].bytes;
	if (hit) {
		*out = mem.v[i - 1];
	}
	pthread_mutex_unlock(&mem.lock);
	return hit;
}

int sim_mem_free(void *p)
{
	struct block b;

	if (!p) {
		return 0;
	}
	pthread_mutex_lock(&mem.lock);
	size_t i = upper(p);
	if (i == 0 || mem.v[i - 1].base != (char *)p) {
		pthread_mutex_unlock(&mem.lock);
		return -1;
	}
	b = mem.v[i - 1];
	memmove(&mem.v[i - 1], &mem.v[i], (mem.n - i) * sizeof *mem.v);
	mem.n--;
	if (b.device >= 0) {
		mem.used[b.device] -= b.bytes;
	}
	pthread_mutex_unlock(&mem.lock);
	if (b.bytes < MAP_FROM) {
		free(p);
	} else {
		munmap(p, b.bytes);
	}
	return 0;
}

int sim_mem_device(const void *p)
{
	struct block b;

	return find(p, &b) ? b.device : -1;
}

bool sim_mem_known(const void *p, void **base, size_t *bytes)
{
	struct block b;

	if (!find(p, &b)) {
		return false;
	}
	*base = b.base;
	*bytes = b.bytes;
	return true;
}

size_t sim_mem_used(int device)
{
	pthread_mutex_lock(&mem.lock);
	size_t n = mem.used[device];
	pthread_mutex_unlock(&mem.lock);
	return n;
}

size_t sim_copy_limit(void)
{
	return (size_t)sim_env_i64("SIMGPU_COPY_BYTES", 1 << 20);
}

static void fill(void *dst, uint32_t value, uint32_t value_size, size_t bytes)
{
	char *p = dst;

	for (size_t i = 0; i + value_size <= bytes; i += value_size) {
		memcpy(p + i, &value, value_size);
	}
}

void sim_mem_execute(const struct sim_op *op)
{
	size_t limit = sim_copy_limit();
	size_t n = op->bytes < limit ? (size_t)op->bytes : limit;

	if (op->kind == SIM_OP_MEMCPY) {
		memmove(op->dst, op->src, n);
	} else if (op->value_size == 1) {
		memset(op->dst, (int)op->value, n);
	} else {
		fill(op->dst, op->value, op->value_size, n);
	}
}

static uint32_t copy_kind(int src, int dst)
{
	/* CUpti_ActivityMemcpyKind: HtoD 1, DtoH 2, DtoD 8, HtoH 9, PtoP 10. */
	if (src < 0) {
		return dst < 0 ? 9 : 1;
	}
	return dst < 0 ? 2 : src == dst ? 8 : 10;
}

void sim_copy(const struct sim_copy *c, struct sim_stream *s)
{
	struct sim_op *op = sim_op_new(SIM_OP_MEMCPY);

	op->corr = c->corr;
	op->dst = c->dst;
	op->src = c->src;
	op->bytes = c->bytes;
	op->src_device = sim_mem_device(c->src);
	op->dst_device = sim_mem_device(c->dst);
	op->copy_kind = copy_kind(op->src_device, op->dst_device);
	op->async = c->async;
	op->nth = sim_launch_number();
	sim_enqueue(s, op, true);
	if (!c->async) {
		sim_op_wait(op);
	}
	sim_op_unref(op);
}

void sim_set(void *dst, uint32_t value, uint32_t value_size, uint64_t count, struct sim_stream *s,
	     uint32_t corr)
{
	struct sim_op *op = sim_op_new(SIM_OP_MEMSET);

	op->corr = corr;
	op->dst = dst;
	op->dst_device = sim_mem_device(dst);
	op->value = value;
	op->value_size = value_size;
	op->bytes = count * value_size;
	op->async = true;
	op->nth = sim_launch_number();
	sim_enqueue(s, op, false);
}
