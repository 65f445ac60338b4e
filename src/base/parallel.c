/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops over chunks, with OpenMP where the compiler has it.
 *
 * Inside oct_parallel_team() the threads of one OpenMP region wait for the loops: starting one
 * costs a store that they are watching. A helper that comes late finds the loop closed and stays
 * out, so on a busy machine nobody waits for a thread that got no core.
 *
 * Each thread begins with a part of its own, the same share of every loop: what it reads is often
 * what it wrote in the loop before, and still in its cache. Then it takes what others have left.
 */
#include "base/parallel.h"

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#else
/* oneDNN brings its OpenMP runtime along; weak, because a build may have none. */
__attribute__((weak)) void omp_set_num_threads(int n_threads);
#endif

/* The loop itself, without threads. */
static void run_all(int64_t n, int64_t grain, int64_t n_chunks, oct_range_fn fn, void *arg)
{
    for (int64_t i = 0; i < n_chunks; i++)
        fn(arg, i * grain, i + 1 < n_chunks ? (i + 1) * grain : n);
}

#ifdef _OPENMP
#define SPINS  5000      /* looks before a thread sleeps: some 100 microseconds */
#define INSIDE 0xffffu   /* bits of a state: helpers at work */
#define OPEN   0x10000u  /* they may join */
#define STOP   0x20000u  /* they may leave */
#define LOOP   0x100000u /* from here on: number of the loop */
#define PARTS  16        /* at most; more threads share them */

/* Chunks that nobody has taken yet. What is written often has cache lines of its own. */
typedef struct part {
    _Alignas(64) _Atomic int64_t next;
    int64_t end;
} part;

typedef struct team {
    _Alignas(64) _Atomic uint64_t state;
    part parts[PARTS];
    _Alignas(64) _Atomic int n_asleep;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool busy; /* a loop inside a loop is not shared */
    /* the loop; not changed while somebody is inside */
    oct_range_fn fn;
    void *arg;
    int64_t n, grain, n_chunks;
    int n_threads, n_parts;
} team;

/* Of the thread that runs a team's function, as long as that runs. */
static _Thread_local team *mine;

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void work(team *t, int number)
{
    for (int k = 0; k < t->n_parts; k++) {
        part *p = &t->parts[(number + k) % t->n_parts];

        for (;;) {
            const int64_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);

            if (i >= p->end) break;
            t->fn(t->arg, i * t->grain, i + 1 < t->n_chunks ? (i + 1) * t->grain : t->n);
        }
    }
}

/* One part for each thread. */
static void cut(team *t)
{
    const int64_t n = OCT_MIN(t->n_threads, PARTS), size = t->n_chunks / n, more = t->n_chunks % n;
    int64_t begin = 0;

    t->n_parts = (int)n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t end = begin + size + (i < more);

        atomic_store_explicit(&t->parts[i].next, begin, memory_order_relaxed);
        t->parts[i].end = end;
        begin = end;
    }
}

static void share(team *t)
{
    const uint64_t old = atomic_load_explicit(&t->state, memory_order_relaxed);

    t->busy = true;
    cut(t);
    atomic_store(&t->state, (old / LOOP + 1) * LOOP | OPEN);
    if (atomic_load(&t->n_asleep) > 0) {
        pthread_mutex_lock(&t->lock);
        pthread_cond_broadcast(&t->wake);
        pthread_mutex_unlock(&t->lock);
    }
    work(t, 0);
    atomic_fetch_and(&t->state, ~(uint64_t)OPEN);
    for (int i = 0; atomic_load_explicit(&t->state, memory_order_acquire) & INSIDE; i++)
        i < SPINS ? relax() : (void)sched_yield();
    t->busy = false;
}

/* A state that is not that of loop `seen`. */
static uint64_t wait_for_loop(team *t, uint64_t seen)
{
    uint64_t s;

    for (int i = 0; i < SPINS; i++) {
        s = atomic_load_explicit(&t->state, memory_order_acquire);
        if (s & STOP || ((s & OPEN) && s / LOOP != seen)) return s;
        relax();
    }
    pthread_mutex_lock(&t->lock);
    atomic_fetch_add(&t->n_asleep, 1);
    while (s = atomic_load(&t->state), !(s & STOP) && (!(s & OPEN) || s / LOOP == seen))
        pthread_cond_wait(&t->wake, &t->lock);
    atomic_fetch_sub(&t->n_asleep, 1);
    pthread_mutex_unlock(&t->lock);
    return s;
}

static void help(team *t, int number)
{
    uint64_t seen = 0;

    for (;;) {
        uint64_t s = wait_for_loop(t, seen);

        if (s & STOP) return;
        if (!atomic_compare_exchange_strong(&t->state, &s, s + 1)) continue;
        seen = s / LOOP;
        if (number < t->n_threads) work(t, number);
        atomic_fetch_sub_explicit(&t->state, 1, memory_order_release);
    }
}

static void stop(team *t)
{
    pthread_mutex_lock(&t->lock);
    atomic_fetch_or(&t->state, STOP);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->lock);
}
#endif

void oct_parallel_team(int n_threads, void (*fn)(void *arg), void *arg)
{
#ifdef _OPENMP
    team t = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

    if (n_threads > 1 && !mine && !omp_in_parallel()) {
#pragma omp parallel num_threads(n_threads)
        {
            const int number = omp_get_thread_num();

            if (number) {
                help(&t, number);
            } else {
                mine = &t;
                fn(arg);
                mine = NULL;
                stop(&t);
            }
        }
        return;
    }
#endif
    (void)n_threads;
    fn(arg);
}

void oct_parallel_for(int n_threads, int64_t n, int64_t grain, oct_range_fn fn, void *arg)
{
    int64_t n_chunks;

    if (n <= 0) return;
    grain = OCT_MAX(grain, 1);
    n_chunks = (n - 1) / grain + 1;
    n_threads = (int)OCT_MIN(n_threads, n_chunks);

#ifdef _OPENMP
    if (n_threads > 1 && mine && !mine->busy) {
        mine->fn = fn;
        mine->arg = arg;
        mine->n = n;
        mine->grain = grain;
        mine->n_chunks = n_chunks;
        mine->n_threads = n_threads;
        share(mine);
        return;
    }
    if (n_threads > 1 && !omp_in_parallel()) {
#pragma omp parallel for num_threads(n_threads) schedule(dynamic, 1)
        for (int64_t i = 0; i < n_chunks; i++)
            fn(arg, i * grain, i + 1 < n_chunks ? (i + 1) * grain : n);
        return;
    }
#endif
    (void)n_threads;
    run_all(n, grain, n_chunks, fn, arg);
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
