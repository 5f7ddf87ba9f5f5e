/* SPDX-License-Identifier: Apache-2.0 */
/* Names that NVTX programs register, kept in memory of our own that only grows, and the program's
 * strings as UTF-8. Works while the tracer is dormant: libraries register long before CUDA is used. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "schema/record/record.h"
#include "tracer/nvtx_internal.h"

#define ARENA_BYTES  (16u << 20) /* mapped, not used */
#define N_CATEGORIES 1024u
#define TEXT_MAX     8192u

static struct {
	pthread_once_t once;
	char *memory;
	_Atomic size_t used;

	struct {
		_Atomic bool set;
		nvtxDomainHandle_t domain;
		uint32_t id;
		struct lag_nvtx_name *name;
	} categories[N_CATEGORIES];

	_Atomic uint32_t n_categories;
} names = { .once = PTHREAD_ONCE_INIT };

static void open_arena(void)
{
	void *p = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	names.memory = p == MAP_FAILED ? NULL : p;
}

struct lag_nvtx_name *lag_nvtx_name_new(const char *text, size_t n)
{
	struct lag_nvtx_name *name;
	size_t at, need;

	if (n > TEXT_MAX)
		n = TEXT_MAX;
	need = (sizeof(*name) + n + 1 + 7) & ~(size_t)7;
	(void)pthread_once(&names.once, open_arena);
	if (!names.memory || atomic_load(&names.used) > ARENA_BYTES - need)
		return NULL;
	at = atomic_fetch_add(&names.used, need);
	if (at > ARENA_BYTES - need)
		return NULL;
	name = (struct lag_nvtx_name *)(void *)(names.memory + at);
	name->n = (uint32_t)n;
	memcpy(name->text, text, n);
	name->text[n] = 0;
	return name;
}

void lag_nvtx_ascii(struct lag_nvtx_text *out, const char *text)
{
	out->text = text ? text : "";
	out->n = text ? strnlen(text, TEXT_MAX) : 0;
}

void lag_nvtx_wide(struct lag_nvtx_text *out, const wchar_t *text)
{
	char *p = out->room, *end = out->room + sizeof(out->room) - 4;

	for (; text && *text && p < end; text++) {
		uint32_t c = (uint32_t)*text;

		if (c < 0x80) {
			*p++ = (char)c;
		} else if (c < 0x800) {
			*p++ = (char)(0xc0 | c >> 6);
			*p++ = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x10000) {
			*p++ = (char)(0xe0 | c >> 12);
			*p++ = (char)(0x80 | (c >> 6 & 0x3f));
			*p++ = (char)(0x80 | (c & 0x3f));
		} else if (c < 0x110000) {
			*p++ = (char)(0xf0 | c >> 18);
			*p++ = (char)(0x80 | (c >> 12 & 0x3f));
			*p++ = (char)(0x80 | (c >> 6 & 0x3f));
			*p++ = (char)(0x80 | (c & 0x3f));
		}
	}
	out->text = out->room;
	out->n = (size_t)(p - out->room);
}

void lag_nvtx_message(struct lag_nvtx_text *out, const nvtxEventAttributes_t *attr)
{
	const struct lag_nvtx_name *name;

	lag_nvtx_ascii(out, NULL);
	if (!attr)
		return;
	switch (attr->messageType) {
	case NVTX_MESSAGE_TYPE_ASCII:
		lag_nvtx_ascii(out, attr->message.ascii);
		break;
	case NVTX_MESSAGE_TYPE_UNICODE:
		lag_nvtx_wide(out, attr->message.unicode);
		break;
	case NVTX_MESSAGE_TYPE_REGISTERED:
		name = (const struct lag_nvtx_name *)(const void *)attr->message.registered;
		if (name) {
			out->text = name->text;
			out->n = name->n;
		}
		break;
	default:
		break;
	}
}

void lag_nvtx_category_name(nvtxDomainHandle_t domain, uint32_t category, const char *text,
			    size_t n)
{
	uint32_t i = atomic_load(&names.n_categories);

	do {
		if (i >= N_CATEGORIES)
			return;
	} while (!atomic_compare_exchange_weak(&names.n_categories, &i, i + 1));
	names.categories[i].domain = domain;
	names.categories[i].id = category;
	names.categories[i].name = lag_nvtx_name_new(text, n);
	atomic_store_explicit(&names.categories[i].set, true, memory_order_release);
}

const struct lag_nvtx_name *lag_nvtx_category_find(nvtxDomainHandle_t domain, uint32_t category)
{
	/* The last name given wins. */
	for (uint32_t i = atomic_load(&names.n_categories); i-- > 0;) {
		if (atomic_load_explicit(&names.categories[i].set, memory_order_acquire) &&
		    names.categories[i].id == category && names.categories[i].domain == domain)
			return names.categories[i].name;
	}
	return NULL;
}
