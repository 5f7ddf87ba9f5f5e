/* SPDX-License-Identifier: Apache-2.0 */
/* Driver, runtime and devices of this process. */
#ifndef TRACER_DEVICES_H
#define TRACER_DEVICES_H

#include "schema/trace/trace_writer.h"

/* Writes device and version records, the first time it is called. Writer thread, once GPU work has been
 * seen: the driver is initialised then, and the questions asked here need no context. */
void lag_devices_describe(struct lag_trace_producer *prod);

#endif
