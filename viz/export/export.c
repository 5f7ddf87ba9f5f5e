/* SPDX-License-Identifier: Apache-2.0 */
/* The list of exporters, and their common options as people type them. */
#include "viz/export/export.h"

#include <string.h>

#include "schema/base/parse.h"

#define LAG_EXPORTER(name) &lag_exporter_##name,
const struct lag_exporter *const lag_exporters[] = {
#include "viz/export/exporters.def"
	NULL,
};

static const char *const kind_names[] = { "kernels", "copies", "nccl",  "nvtx", "api",
					  "waits",   "time",   "steps", "flows" };

const struct lag_exporter *lag_exporter_find(const char *name)
{
	for (size_t i = 0; lag_exporters[i]; i++) {
		if (strcmp(lag_exporters[i]->name, name) == 0)
			return lag_exporters[i];
	}
	return NULL;
}

const char *lag_export_kinds_list(void)
{
	return "kernels copies nccl nvtx api waits time steps flows";
}

enum lag_status lag_export_kinds_parse(const char *text, unsigned *kinds, struct lag_err *err)
{
	*kinds = 0;
	while (*text) {
		size_t n = strcspn(text, ","), i;

		for (i = 0; i < sizeof(kind_names) / sizeof(kind_names[0]); i++) {
			if (strlen(kind_names[i]) == n && strncmp(kind_names[i], text, n) == 0)
				break;
		}
		if (i == sizeof(kind_names) / sizeof(kind_names[0])) {
			return lag_err_set(err, LAG_ERR_USAGE,
					   "'%.*s' is no kind of event; there are: %s", (int)n,
					   text, lag_export_kinds_list());
		}
		*kinds |= 1u << i;
		text += n + (text[n] == ',');
	}
	if (!*kinds)
		return lag_err_set(err, LAG_ERR_USAGE, "no kinds of events given");
	return LAG_OK;
}

static bool parse_end(const char *text, size_t n, int64_t *ns)
{
	char copy[64];

	if (!n)
		return true;
	if (n >= sizeof(copy))
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	return lag_parse_duration(copy, ns);
}

enum lag_status lag_export_time_parse(const char *text, int64_t *from_ns, int64_t *until_ns,
				      struct lag_err *err)
{
	const char *dash = strchr(text, '-');

	*from_ns = 0;
	*until_ns = INT64_MAX;
	if (!dash || !parse_end(text, (size_t)(dash - text), from_ns) ||
	    !parse_end(dash + 1, strlen(dash + 1), until_ns)) {
		return lag_err_set(err, LAG_ERR_USAGE,
				   "'%s' is no time span; write 10ms-20ms, 1.5s- or -2s", text);
	}
	if (*from_ns >= *until_ns)
		return lag_err_set(err, LAG_ERR_USAGE, "the time span '%s' is empty", text);
	return LAG_OK;
}
