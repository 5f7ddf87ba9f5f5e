/* SPDX-License-Identifier: Apache-2.0 */
/* Puts all hosts on one clock: observations in, one map per host out. Pure: no files, no globals.
 * Rules: a map belongs to a host; its ranks share the host clock. Estimate with uncertainty and
 * causality bound are two different things and are kept apart. */
#ifndef MERGE_ALIGN_H
#define MERGE_ALIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/record/enums.h"

/* One rank's part in one communication, raw times of its host. */
struct lag_align_member {
	uint32_t host;   /* dense index */
	uint32_t device; /* dense index over all devices; belongs to `host` */
	int64_t start_ns, end_ns;
};

/* A collective: members[first_member .. + n_members); complete = every communicator member is there. */
struct lag_align_collective {
	enum lag_func func;
	int64_t bytes; /* per rank; -1 unknown */
	uint32_t comm; /* dense index, for grouping */
	uint32_t first_member, n_members;
	uint32_t n_ranks; /* of the communicator, recorded or not; at least n_members */
	bool complete;
	bool fused; /* shares its kernel with other operations */
};

/* A matched send/receive. */
struct lag_align_message {
	struct lag_align_member send, recv;
	int64_t bytes;
	bool grouped; /* the kernels carry more than this message */
};

/* One clock bracket of a process: the clock of device times (CUPTI's, or the device's own as the driver
 * converts it) against the host clock. */
struct lag_align_bracket {
	uint32_t host, device;
	bool own; /* cupti_ns is a reading of this device's own clock */
	int64_t realtime_ns, cupti_ns, monotonic_ns, bracket_ns;
};

/* What a host's time daemon says of its clock at one moment: within max_error_ns of UTC. */
struct lag_align_state {
	uint32_t host;
	int64_t at_ns, max_error_ns;
};

/* A jump of a host's wall clock that the recording names; the clock showed at_ns soon after it. */
struct lag_align_step {
	uint32_t host;
	int64_t at_ns, step_ns;
};

struct lag_align_input {
	uint32_t n_hosts, n_devices;
	const uint32_t *device_host; /* n_devices */
	uint32_t reference_ref;      /* 1 + the host whose clock is the common one; 0: any */
	const struct lag_align_member *members;
	size_t n_members;
	const struct lag_align_collective *collectives;
	size_t n_collectives;
	const struct lag_align_message *messages;
	size_t n_messages;
	const struct lag_align_bracket *brackets;
	size_t n_brackets;
	const struct lag_align_state *states;
	size_t n_states;
	const struct lag_align_step *steps;
	size_t n_steps;
};

/* What joins a host to the reference. */
enum lag_align_basis {
	LAG_ALIGN_NOTHING, /* nothing: its uncertainty is unknown */
	LAG_ALIGN_REFERENCE,
	LAG_ALIGN_COLLECTIVES,
	LAG_ALIGN_MESSAGES, /* ends of sends and receives, somewhere on the way */
	LAG_ALIGN_BOTH,
	LAG_ALIGN_WALL, /* what time daemons, or with "wall" the user, say of the clocks */
};

/* corrected = raw + offset_ns + drift * (raw - ref_ns) for raw in [from_ns, next segment's from_ns). */
struct lag_align_segment {
	uint32_t host;
	int64_t from_ns, ref_ns;
	double offset_ns;      /* kept fractional: rounding happens once, when applied */
	double drift;          /* dimensionless, 1e-6 = 1 ppm */
	double uncertainty_ns; /* of the estimate, worst device of the host; < 0 = unknown */
	double bound_lo_ns, bound_hi_ns; /* causality: the true correction at ref_ns lies inside */
	uint32_t n_observations;
	enum lag_align_basis basis;
};

/* Extra uncertainty of one device from a moment on (its own conversion to the host clock). */
struct lag_align_device {
	uint32_t device;
	int64_t from_ns;
	double offset_ns;      /* correction from the device's own brackets, 0 without them */
	double uncertainty_ns; /* whole uncertainty of this device's corrected times; < 0 = unknown */
	double own_ns; /* of that what the devices of one host do not share: for comparing them */
};

/* Repaired order: at the moment at_ns of the common clock a device's times are shift_ns late; between two
 * rows on the line between them, outside of a device's rows not at all. */
struct lag_align_repair {
	uint32_t device;
	int64_t at_ns;
	double shift_ns;
};

struct lag_align_result {
	const char *method;
	uint32_t reference_host;
	struct lag_align_segment *segments; /* by host, then from_ns; at least one per host */
	size_t n_segments;
	struct lag_align_device *devices; /* by device, then from_ns */
	size_t n_devices;
	uint64_t
		n_violations; /* receives that end before their send starts, collectives left before the last came */
	uint64_t n_pairs; /* pairs that were checked */
	/* Where the order was repaired: by device, then at_ns; violations there were; the largest shift. */
	struct lag_align_repair *repairs;
	size_t n_repairs;
	uint64_t n_repaired;
	double repair_max_ns;
	/* Hosts that say they are closer to UTC than observations show them, by at most so much. */
	uint32_t n_contradicted;
	double contradicted_ns;
	/* Fit per last arriver differed by this much at most (SEMANTICS rule 3); < 0 = cannot tell. */
	double arriver_bias_ns;
};

/* "collectives", ... */
const char *lag_align_basis_name(enum lag_align_basis basis);

struct lag_aligner {
	const char *name; /* "none", "wall", "collective" */
	enum lag_status (*align)(const struct lag_align_input *in, struct lag_align_result *out,
				 struct lag_err *err);
};

#define LAG_ALIGNER(name) extern const struct lag_aligner lag_aligner_##name;
#include "merge/aligners.def"

extern const struct lag_aligner *const lag_aligners[]; /* NULL-terminated */

/* What repaired order adds to a device's time on the common clock. */
int64_t lag_align_shift(const struct lag_align_result *res, uint32_t device, int64_t at_ns);

/* Corrected time of a raw one, repaired order included. */
int64_t lag_align_apply(const struct lag_align_result *res, uint32_t host, uint32_t device,
			int64_t raw_ns);

/* The same for many times in a row: *at, zeroed before the first, keeps what is in force around the last. */
struct lag_align_at {
	int64_t from_ns,
		until_ns; /* raw times for which what follows holds; until_ns 0: for none */
	double device_ns; /* the device's own correction, then its host's */
	double offset_ns, drift, ref_ns;
	uint32_t host, device;
};

void lag_align_seek(const struct lag_align_result *res, struct lag_align_at *at, uint32_t host,
		    uint32_t device, int64_t raw_ns);

/* To the nearest, halves away from zero; |x| < 2^63. Here, since a call would be most of its cost. */
static inline int64_t lag_align_round(double x)
{
	int64_t whole = (int64_t)x;
	double rest = x - (double)whole;

	return whole + (rest >= 0.5) - (rest <= -0.5);
}

static inline int64_t lag_align_apply_at(const struct lag_align_result *res,
					 struct lag_align_at *at, uint32_t host, uint32_t device,
					 int64_t raw_ns)
{
	int64_t corrected;
	double add;

	if (raw_ns < at->from_ns || raw_ns >= at->until_ns || host != at->host ||
	    device != at->device)
		lag_align_seek(res, at, host, device, raw_ns);
	/* The difference in doubles: it only meets the drift, and cannot overflow. */
	add = at->device_ns +
	      (at->offset_ns + at->drift * ((double)raw_ns - at->ref_ns + at->device_ns));
	if (!(add > -9e18 && add < 9e18) ||
	    __builtin_add_overflow(raw_ns, lag_align_round(add), &corrected))
		return raw_ns;
	return res->n_repairs ? corrected + lag_align_shift(res, device, corrected) : corrected;
}

/* Uncertainty in ns of a device's corrected times at a raw moment; INT64_MAX = unknown. */
int64_t lag_align_uncertainty(const struct lag_align_result *res, uint32_t host, uint32_t device,
			      int64_t raw_ns);

/* Of that what a device does not share with others of its host; INT64_MAX = unknown. */
int64_t lag_align_own(const struct lag_align_result *res, uint32_t device, int64_t raw_ns);

void lag_align_release(struct lag_align_result *res);

#endif
