/* SPDX-License-Identifier: Apache-2.0 */
/* The running program's folder comes from /proc/self/exe, not from argv[0] or $PATH. */
#include "cli/where.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum lag_status lag_where(const char *name, char *path, size_t room, struct lag_err *err)
{
	static const char *const places[] = { "", "../lib/laggard/", "../libexec/laggard/" };
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n <= 0)
		return lag_err_errno(err, LAG_ERR_SYSTEM, "cannot read /proc/self/exe");
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return lag_err_set(err, LAG_ERR_SYSTEM, "/proc/self/exe is '%s'", self);
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int len = snprintf(path, room, "%s%s%s", self, places[i], name);

		if (len > 0 && (size_t)len < room && access(path, R_OK) == 0)
			return LAG_OK;
	}
	return lag_err_set(err, LAG_ERR_INPUT,
			   "%s is neither beside the program (%s) nor in ../lib/laggard", name,
			   self);
}
