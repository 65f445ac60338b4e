/* SPDX-License-Identifier: Apache-2.0 */
/* What bench and profile share: a compiled model, random inputs, statistics of times. */
#ifndef CLI_MEASURE_H
#define CLI_MEASURE_H

#include "cli/cli.h"

/* A model ready to run; its graph is freed already. */
typedef struct cli_session {
    oct_plan *plan;
    oct_dtype *input_types; /* as the plan's inputs */
    double load_ms, plan_ms;
    int32_t n_threads;
    oct_preprocess preprocess; /* how pictures are prepared, and how many a run takes: if asked */
    int64_t batch;
} cli_session;

typedef struct cli_session_options {
    const cli_list *shapes;
    int64_t batch;              /* 0: as the model says */
    int32_t n_threads;          /* of each run; 0: the context's */
    bool pictures;              /* the network will be fed with pictures */
    const char *family, *words; /* of their preprocessing; may be NULL */
} cli_session_options;

/* On failure nothing is left to close. */
oct_status cli_session_open(cli *c, const char *path, const cli_session_options *o,
                            cli_session *out);
void cli_session_close(cli_session *s);

/* Fills all inputs with numbers that depend on the seed only: floats in [0, 1), small integers. */
oct_status cli_session_fill(const cli_session *s, oct_run *r, uint64_t seed);

/* Times that are collected one by one. */
typedef struct cli_times {
    int64_t *ns;
    size_t n, cap;
} cli_times;

void cli_times_add(cli_times *t, int64_t ns);
void cli_times_fini(cli_times *t);

typedef struct cli_time_stats {
    double median_ms, mean_ms, min_ms, p10_ms, p90_ms, p99_ms;
} cli_time_stats;

/* Sorts the times. All zero if there are none. */
cli_time_stats cli_times_stats(cli_times *t);

double cli_peak_rss_mb(void); /* largest resident set of this process so far; 0: not known */

#endif
