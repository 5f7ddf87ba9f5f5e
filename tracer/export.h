/* SPDX-License-Identifier: Apache-2.0 */
/* Marks the symbols that leave the library; hooks.def lists them all. */
#ifndef TRACER_EXPORT_H
#define TRACER_EXPORT_H

#define LAG_EXPORT __attribute__((visibility("default")))

#endif
