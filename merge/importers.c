/* SPDX-License-Identifier: Apache-2.0 */
/* The list of importers, made from its registry. */
#include <string.h>

#include "merge/importer.h"

#define LAG_IMPORTER(name) &lag_importer_##name,
const struct lag_importer *const lag_importers[] = {
#include "merge/importers.def"
	NULL
};

const struct lag_importer *lag_importer_find(const char *name)
{
	for (size_t i = 0; lag_importers[i]; i++) {
		if (strcmp(lag_importers[i]->name, name) == 0)
			return lag_importers[i];
	}
	return NULL;
}
