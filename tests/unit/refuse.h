/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in the place of fallocate, in tests that are linked with --wrap=fallocate (CMakeLists.txt): a file
 * system that cannot allocate, or has no room. */
#ifndef TESTS_UNIT_REFUSE_H
#define TESTS_UNIT_REFUSE_H

/* From now on it fails with this errno; 0: it is the system's again. */
void refuse_allocation(int number);

/* How often it did since refuse_allocation. */
unsigned n_refused_allocations(void);

#endif
