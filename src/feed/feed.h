/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures (or tensors) into runs, in order, for several threads at once. */
#ifndef OCT_FEED_FEED_H
#define OCT_FEED_FEED_H

#include <octet/data.h>
#include <octet/plan.h>

#include "base/threads.h"
#include "graph/graph.h"

typedef struct oct_feed oct_feed;

/* How pictures are brought in, and how many. */
typedef struct oct_feed_options {
    const oct_preprocess *preprocess; /* NULL: as the network's family has it */
    const char *family;               /* NULL: recognised */
    int64_t limit;                    /* at most so many items; 0: all */
} oct_feed_options;

/* `*bound` is the network with the shapes it will be fed with: what runs must be made for. */
oct_status oct_feed_new(const oct_graph *g, const oct_dataset *d, const oct_feed_options *o,
                        oct_graph **bound, oct_feed **out);
void oct_feed_free(oct_feed *f); /* accepts NULL */

int64_t oct_feed_size(const oct_feed *f); /* of good ones, where broken ones are left out */

/* From the first one again, at most `limit` of them (0: all). Not while others take. */
oct_status oct_feed_rewind(oct_feed *f, int64_t limit);

/*
 * The next item into the run's inputs. *index counts those that were taken, from 0, whatever was
 * left out between them: below oct_feed_size(). -1: there are no more. Errors go to `ctx`, and end
 * the feed.
 */
oct_status oct_feed_take(oct_feed *f, oct_ctx *ctx, oct_run *r, int64_t *index);

/* The name of the item that was taken as number i, for messages. */
const char *oct_feed_name(const oct_feed *f, int64_t i);

/* What to do with all items, on several threads. */
typedef struct oct_feed_job {
    const char *what; /* for progress; NULL: none is reported */
    int32_t n_workers;
    /* Once for each worker, before it starts: sets hooks. May be NULL. */
    oct_status (*begin)(void *user, int32_t worker, oct_run *r);
    /* After the network ran on item `index`; errors go to `ctx`. May be NULL. */
    oct_status (*one)(void *user, int32_t worker, oct_ctx *ctx, oct_run *r, int64_t index);
    /* Once for each worker after the last item, also if it never began: frees what is of its
     * context. On the caller's thread. May be NULL. */
    void (*end)(void *user, int32_t worker);
    void *user;
} oct_feed_job;

/* Runs `plan` on every item, a run for each worker; worker 0 is the caller and reports progress.
 * Stops when one fails; of several failures that of the first item is reported. */
oct_status oct_feed_each(oct_feed *f, const oct_plan *plan, const oct_feed_job *job);

/* As many workers, with as many threads each, as use all threads of the context. */
void oct_feed_workers(const oct_feed *f, oct_ctx *ctx, int32_t *n_workers, int32_t *n_threads);

#endif
