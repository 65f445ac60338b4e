/* SPDX-License-Identifier: Apache-2.0 */
/* Labels for tests of the metrics, written as a COCO file and opened as people do. */
#ifndef OCT_TESTS_EVAL_CASE_H
#define OCT_TESTS_EVAL_CASE_H

#include "tests/alloc.h"

/* One label; the area is the box's if it is 0. Ends a list: category 0. */
typedef struct truth_row {
    int64_t image, category;
    double x, y, width, height, area;
    int crowd;
} truth_row;

/* Writes labels of the pictures and categories whose ids these lists hold (0 ends them). */
static inline void write_truth(const char *path, const int64_t *images, const int64_t *categories,
                               const truth_row *rows)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    (void)fprintf(f, "{\"images\": [");
    for (int i = 0; images[i]; i++)
        (void)fprintf(
            f, "%s{\"id\": %lld, \"file_name\": \"%lld.jpg\", \"width\": 640, \"height\": 480}",
            i ? ", " : "", (long long)images[i], (long long)images[i]);
    (void)fprintf(f, "],\n\"categories\": [");
    for (int i = 0; categories[i]; i++)
        (void)fprintf(f, "%s{\"id\": %lld, \"name\": \"c%lld\"}", i ? ", " : "",
                      (long long)categories[i], (long long)categories[i]);
    (void)fprintf(f, "],\n\"annotations\": [");
    for (int i = 0; rows[i].category; i++) {
        const truth_row *r = &rows[i];

        (void)fprintf(
            f,
            "%s\n{\"id\": %d, \"image_id\": %lld, \"category_id\": %lld, \"bbox\": [%.17g, "
            "%.17g, %.17g, %.17g], \"area\": %.17g, \"iscrowd\": %d}",
            i ? "," : "", i + 1, (long long)r->image, (long long)r->category, r->x, r->y, r->width,
            r->height, r->area > 0 ? r->area : r->width * r->height, r->crowd);
    }
    (void)fprintf(f, "]}\n");
    assert_int_equal(fclose(f), 0);
}

static inline oct_dataset *open_truth(oct_ctx *ctx, const int64_t *images,
                                      const int64_t *categories, const truth_row *rows)
{
    char dir[64], path[96];
    oct_dataset_options o;
    oct_dataset *d = NULL;

    (void)snprintf(path, sizeof(path), "%s/truth.json", make_folder(dir));
    write_truth(path, images, categories, rows);
    oct_dataset_options_init(&o);
    o.annotations = path;
    assert_ok(ctx, oct_dataset_open(ctx, &o, &d));
    remove_folder(dir);
    return d;
}

#endif
