/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine, or the control group the process lives in, allows. */
#ifndef OCT_BASE_MACHINE_H
#define OCT_BASE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

/* Physical cores this process may use: affinity, SMT siblings and cgroup quota considered; at
 * least 1. */
int32_t oct_machine_cores(void);

/* Bytes of memory this process may use (cgroup limit or physical memory). */
size_t oct_machine_memory(void);

/* The same with the kernel's files (proc, sys) below `root`, which tests make up. */
int32_t oct_machine_cores_in(const char *root);
size_t oct_machine_memory_in(const char *root);

/* Largest resident set of this process so far, in bytes. */
size_t oct_machine_peak_rss(void);

/* A steady clock. */
int64_t oct_time_ns(void);

#endif
