/* SPDX-License-Identifier: Apache-2.0 */
/* Finds objects in pictures, with several threads that share one plan: detect MODEL PICTURE... */
#include <octet/octet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

typedef struct job {
    oct_plan *plan;
    oct_detector *detector; /* each thread copies it */
    char **pictures;
    int n_pictures;
    atomic_int next, n_failed;
} job;

static oct_status detect(oct_ctx *ctx, const job *j, oct_detector *d, oct_run *r, const char *path)
{
    oct_detection found[100]; /* the most there are, unless asked for more */
    oct_preprocess prep;
    oct_image *image = NULL;
    oct_mapping map;
    void *data;
    size_t size;
    int32_t n = 0;
    oct_status st = oct_image_load(ctx, path, NULL, &image);

    oct_preprocess_init(&prep);
    oct_detector_preprocess(d, &prep);
    if (!st) st = oct_run_input(r, oct_plan_input_name(j->plan, 0), &data, &size);
    if (!st && size != sizeof(float) * 3 * (size_t)(prep.width * prep.height)) st = OCT_ERR_SHAPE;
    if (!st) st = oct_preprocess_run(ctx, &prep, image, OCT_DTYPE_F32, data, &map);
    if (!st && !(st = oct_run_execute(r))) st = oct_detector_decode(d, r, 0, &map, NULL, found, &n);
    for (const oct_detection *f = found; f < found + n && f->score > 0.25f; f++)
        printf("%s: class %d, score %.2f, box %.0f %.0f %.0f %.0f\n", path, f->category, f->score,
               f->x, f->y, f->width, f->height);
    oct_image_free(image);
    return st;
}

static void *work(void *arg)
{
    job *j = arg;
    oct_ctx *ctx = oct_ctx_new(NULL); /* errors and memory of this thread */
    oct_run *run = NULL;
    oct_detector *d = NULL;
    oct_status st = ctx ? oct_run_new(ctx, j->plan, &run) : OCT_ERR_MEMORY;

    if (!st) st = oct_detector_copy(ctx, j->detector, &d);
    for (int i; !st && (i = j->next++) < j->n_pictures;)
        st = detect(ctx, j, d, run, j->pictures[i]);
    if (st) j->n_failed += fprintf(stderr, "error %d: %s\n", st, ctx ? oct_ctx_error(ctx) : "");
    oct_detector_free(d);
    oct_run_free(run);
    oct_ctx_free(ctx);
    return NULL;
}

int main(int argc, char **argv)
{
    enum { THREADS = 2 };
    job j = {.pictures = argv + 2, .n_pictures = argc - 2};
    pthread_t threads[THREADS];
    oct_graph *g = NULL;
    oct_ctx *ctx;

    if (argc < 3) return 0 < fprintf(stderr, "usage: detect MODEL PICTURE...\n");
    if ((ctx = oct_ctx_new(NULL))) oct_ctx_set_threads(ctx, 1); /* of each run */
    if (!ctx || oct_onnx_load(ctx, argv[1], &g) || oct_detector_new(g, NULL, &j.detector) ||
        oct_plan_new(g, NULL, &j.plan))
        return 0 < fprintf(stderr, "detect: %s\n", ctx ? oct_ctx_error(ctx) : "no memory");
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, &j)) return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    oct_detector_free(j.detector);
    oct_plan_free(j.plan);
    oct_graph_free(g);
    oct_ctx_free(ctx);
    return j.n_failed != 0;
}
