/* SPDX-License-Identifier: Apache-2.0 */
/* What the comparison of ranks takes apart. */
#ifndef VIZ_MODEL_PEERS_INTERNAL_H
#define VIZ_MODEL_PEERS_INTERNAL_H

#include "viz/model/peers.h"

struct lag_peers_keys {
	const struct lag_trace *trace;
	const struct lag_steps *steps;
	const struct lag_roles *roles;
	struct lag_peers *peers; /* key and n_keys are filled; key has room for every gpu event */
	uint8_t *left_out;       /* by gpu event, zeroed: not compared, runs beside communication */
};

enum lag_status lag_peers_find_keys(struct lag_peers_keys *w) LAG_MUST_USE;

#endif
