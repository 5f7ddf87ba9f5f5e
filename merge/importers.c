/* SPDX-License-Identifier: Apache-2.0 */
/* The list of importers, made from its registry. */
#include "merge/importer.h"

#define LAG_IMPORTER(name) &lag_importer_##name,
const struct lag_importer *const lag_importers[] = {
#include "merge/importers.def"
	NULL
};
