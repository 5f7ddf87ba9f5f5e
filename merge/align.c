/* SPDX-License-Identifier: Apache-2.0 */
/* The aligners' table, and what a result answers for a single moment. */
#include "merge/align.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct lag_aligner *const lag_aligners[] = {
#define LAG_ALIGNER(name) &lag_aligner_##name,
#include "merge/aligners.def"
	NULL
};

const char *lag_align_basis_name(enum lag_align_basis basis)
{
	static const char *const names[] = {
		[LAG_ALIGN_NOTHING] = "nothing",
		[LAG_ALIGN_REFERENCE] = "reference",
		[LAG_ALIGN_COLLECTIVES] = "collectives",
		[LAG_ALIGN_MESSAGES] = "messages",
		[LAG_ALIGN_BOTH] = "both",
		[LAG_ALIGN_WALL] = "wall clock",
	};

	return names[basis];
}

/* Row of `device` in force at a raw time; before its first row, that one. NULL without rows. */
static const struct lag_align_device *device_row(const struct lag_align_result *res,
						 uint32_t device, int64_t raw_ns)
{
	size_t lo = 0;
	size_t hi = res->n_devices;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct lag_align_device *d = &res->devices[mid];
		if (d->device < device || (d->device == device && d->from_ns <= raw_ns)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (lo > 0 && res->devices[lo - 1].device == device)
		return &res->devices[lo - 1];
	return lo < res->n_devices && res->devices[lo].device == device ? &res->devices[lo] : NULL;
}

static const struct lag_align_segment *segment(const struct lag_align_result *res, uint32_t host,
					       int64_t raw_ns)
{
	size_t lo = 0;
	size_t hi = res->n_segments;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct lag_align_segment *s = &res->segments[mid];
		if (s->host < host || (s->host == host && s->from_ns <= raw_ns)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (lo > 0 && res->segments[lo - 1].host == host)
		return &res->segments[lo - 1];
	return lo < res->n_segments && res->segments[lo].host == host ? &res->segments[lo] : NULL;
}

int64_t lag_align_shift(const struct lag_align_result *res, uint32_t device, int64_t at_ns)
{
	size_t lo = 0;
	size_t hi = res->n_repairs;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct lag_align_repair *r = &res->repairs[mid];
		if (r->device < device || (r->device == device && r->at_ns <= at_ns)) {
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	if (lo == 0 || res->repairs[lo - 1].device != device)
		return 0;
	const struct lag_align_repair *a = &res->repairs[lo - 1];
	const struct lag_align_repair *b = a + 1;
	if (lo == res->n_repairs || b->device != device)
		return a->at_ns == at_ns ? llround(a->shift_ns) : 0;
	double part = (double)((uint64_t)at_ns - (uint64_t)a->at_ns) /
		      (double)((uint64_t)b->at_ns - (uint64_t)a->at_ns);
	return llround(a->shift_ns + part * (b->shift_ns - a->shift_ns));
}

/* A row that begins at row_ns, before or after raw_ns, narrows the times for which that answer holds. */
static void narrow(struct lag_align_at *at, int64_t row_ns, int64_t raw_ns)
{
	if (row_ns <= raw_ns) {
		at->from_ns = row_ns > at->from_ns ? row_ns : at->from_ns;
	} else {
		at->until_ns = row_ns < at->until_ns ? row_ns : at->until_ns;
	}
}

void lag_align_seek(const struct lag_align_result *res, struct lag_align_at *at, uint32_t host,
		    uint32_t device, int64_t raw_ns)
{
	const struct lag_align_device *d = device_row(res, device, raw_ns);
	const struct lag_align_segment *s = segment(res, host, raw_ns);

	*at = (struct lag_align_at){
		.from_ns = INT64_MIN, .until_ns = INT64_MAX, .host = host, .device = device
	};
	if (d) {
		at->device_ns = d->offset_ns;
		narrow(at, d->from_ns, raw_ns);
	}
	if (d && d + 1 < res->devices + res->n_devices && d[1].device == device)
		narrow(at, d[1].from_ns, raw_ns);
	if (s) {
		at->offset_ns = s->offset_ns;
		at->drift = s->drift;
		at->ref_ns = (double)s->ref_ns;
		narrow(at, s->from_ns, raw_ns);
	}
	if (s && s + 1 < res->segments + res->n_segments && s[1].host == host)
		narrow(at, s[1].from_ns, raw_ns);
}

int64_t lag_align_apply(const struct lag_align_result *res, uint32_t host, uint32_t device,
			int64_t raw_ns)
{
	struct lag_align_at at = { 0 };

	return lag_align_apply_at(res, &at, host, device, raw_ns);
}

int64_t lag_align_uncertainty(const struct lag_align_result *res, uint32_t host, uint32_t device,
			      int64_t raw_ns)
{
	const struct lag_align_device *d = device_row(res, device, raw_ns);
	const struct lag_align_segment *s = segment(res, host, raw_ns);
	double u = d ? d->uncertainty_ns : s ? s->uncertainty_ns : -1;
	return u < 0 || u > 9e18 ? INT64_MAX : llround(u);
}

int64_t lag_align_own(const struct lag_align_result *res, uint32_t device, int64_t raw_ns)
{
	const struct lag_align_device *d = device_row(res, device, raw_ns);
	return !d || d->own_ns < 0 || d->own_ns > 9e18 ? INT64_MAX : llround(d->own_ns);
}

void lag_align_release(struct lag_align_result *res)
{
	free(res->segments);
	free(res->devices);
	free(res->repairs);
	memset(res, 0, sizeof(*res));
}
