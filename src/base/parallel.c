/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over chunks, with OpenMP where the compiler has it. */
#include "base/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#else
/* oneDNN brings its OpenMP runtime along; weak, because a build may have none. */
__attribute__((weak)) void omp_set_num_threads(int n_threads);
#endif

void oct_parallel_for(int n_threads, int64_t n, int64_t grain, oct_range_fn fn, void *arg)
{
    int64_t n_chunks;

    if (n <= 0) return;
    grain = OCT_MAX(grain, 1);
    n_chunks = (n - 1) / grain + 1;
    n_threads = (int)OCT_MIN(n_threads, n_chunks);
    (void)n_threads;

#ifdef _OPENMP
    if (n_threads > 1) {
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1)
        for (int64_t i = 0; i < n_chunks; i++)
            fn(arg, i * grain, i + 1 < n_chunks ? (i + 1) * grain : n);
        return;
    }
#endif
    for (int64_t i = 0; i < n_chunks; i++)
        fn(arg, i * grain, i + 1 < n_chunks ? (i + 1) * grain : n);
}

int oct_parallel_thread(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

void oct_parallel_release(void)
{
#ifdef _OPENMP
    omp_pause_resource_all(omp_pause_soft);
#endif
}

void oct_parallel_set_threads(int n_threads)
{
#ifndef _OPENMP
    if (!omp_set_num_threads) return;
#endif
    omp_set_num_threads(OCT_MAX(n_threads, 1));
}
