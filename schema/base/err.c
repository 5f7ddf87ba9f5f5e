/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts are cut at LAG_ERR_TEXT_MAX, never overflowed; no allocation. */
#include "schema/base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void append(struct lag_err *err, const char *text)
{
	size_t n = strlen(err->text);

	(void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", text);
}

enum lag_status lag_err_set(struct lag_err *err, enum lag_status status, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return status;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return err->status = status;
}

enum lag_status lag_err_errno(struct lag_err *err, enum lag_status status, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (!err)
		return status;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	append(err, strerror(saved));
	errno = saved;
	return err->status = status;
}

enum lag_status lag_err_wrap(struct lag_err *err, const char *fmt, ...)
{
	char old[LAG_ERR_TEXT_MAX];
	va_list ap;

	if (!err)
		return LAG_ERR_INPUT;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	append(err, old);
	return err->status;
}
