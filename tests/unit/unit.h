/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka with the headers it needs before it, in the order it needs them. */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
