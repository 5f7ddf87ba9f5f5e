/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the environment variables through which `laggard record` and the tracer meet. */
#ifndef SCHEMA_ENV_H
#define SCHEMA_ENV_H

#define LAG_ENV_DIR      "LAGGARD_DIR" /* run directory; the tracer is dormant without it */
#define LAG_ENV_LIB      "LAGGARD_LIB" /* path of liblaggard-tracer.so, to find itself in lists */
#define LAG_ENV_RUN_ID   "LAGGARD_RUN_ID"   /* same for all processes of a run */
#define LAG_ENV_MAX_SIZE "LAGGARD_MAX_SIZE" /* bytes per process */
#define LAG_ENV_CUPTI    "LAGGARD_CUPTI"    /* "on" (default), "off" */
#define LAG_ENV_NVTX     "LAGGARD_NVTX" /* the same, and "always": also in processes without CUDA */
#define LAG_ENV_NCCL     "LAGGARD_NCCL"
#define LAG_ENV_RANKS    "LAGGARD_RANKS" /* list of ranks that record; others stay dormant */
#define LAG_ENV_LOCAL    "LAGGARD_LOCAL" /* node-local spool directory */
#define LAG_ENV_CONFLICT \
	"LAGGARD_CONFLICT"            /* injection variables that were taken: kept as metadata */
#define LAG_ENV_DEBUG "LAGGARD_DEBUG" /* a file the tracer writes its own problems to */

#define LAG_TRACER_NAME      "liblaggard-tracer.so"
#define LAG_SPOOL_PREFIX     "laggard-spool-" /* + run id: folder of a run in the local spool */
#define LAG_DEFAULT_MAX_SIZE (UINT64_C(4) << 30)

#endif
