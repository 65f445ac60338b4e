/* SPDX-License-Identifier: Apache-2.0 */
/* One way to use threads: a loop cut into fixed chunks. */
#ifndef OCT_BASE_PARALLEL_H
#define OCT_BASE_PARALLEL_H

#include "base/status.h"

/* Works on [begin, end). Must not fail and must not touch the context. */
typedef void (*oct_range_fn)(void *arg, int64_t begin, int64_t end);

/* A grain for cheap work on single elements (arithmetic, copies): large enough to pay for waking a
 * thread. Work that costs more for each element has a smaller grain of its own. */
#define OCT_GRAIN_ELEMENTS 16384

/*
 * Cuts [0, n) into chunks of `grain` (at least 1; independent of the number of threads, so that
 * reductions over chunks give the same bits for any number) and runs them on up to n_threads.
 */
void oct_parallel_for(int n_threads, int64_t n, int64_t grain, oct_range_fn fn, void *arg);

/*
 * Calls fn on the calling thread, with up to n_threads - 1 helpers at hand: loops that it starts
 * begin at once. It must not start OpenMP regions of its own (oneDNN): they would get one thread.
 */
void oct_parallel_team(int n_threads, void (*fn)(void *arg), void *arg);

/* Inside an oct_range_fn: which of the n_threads runs it, from 0. For scratch memory only. */
int oct_parallel_thread(void);

/*
 * Ends the calling thread's idle helpers; the next loop starts new ones. The OpenMP runtime counts
 * helpers of all threads, and lets waiting ones sleep early (slow to wake) when there are more than
 * cores: a thread that will not compute for a while should not keep any.
 */
void oct_parallel_release(void);

/* The number of threads the calling thread's OpenMP regions (oneDNN's too) will use. */
void oct_parallel_set_threads(int n_threads);

#endif
