/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sample in the making: a scene of one or four pictures on a canvas and the view of it that
 * becomes the network's input, then its pixels and boxes.
 *
 * A row of augment.def does one kind of change, in the order of the table: first all that `arrange`
 * the scene, then it is drawn, then all that `change` pixels and boxes. Each row has random numbers
 * of its own, so that turning one on or off does not change what the others do.
 */
#ifndef OCT_AUGMENT_SAMPLE_H
#define OCT_AUGMENT_SAMPLE_H

#include "augment/labels.h"
#include "augment/pictures.h"
#include "base/rng.h"

/* 8-bit RGB, row by row. */
typedef struct oct_rgb {
    int32_t width, height;
    uint8_t *at;
} oct_rgb;

/* A rectangle; the right and lower borders are not part of it. */
typedef struct oct_area {
    double x1, y1, x2, y2;
} oct_area;

/* x' = xx x + xy y + x0, y' = yx x + yy y + y0; pixel (i, j) covers [i, i + 1) x [j, j + 1). */
typedef struct oct_matrix {
    double xx, xy, x0, yx, yy, y0;
} oct_matrix;

/* A picture on the canvas. */
typedef struct oct_tile {
    const oct_image *im;
    int64_t index;
    oct_area at;   /* where the whole picture lies .. */
    oct_area clip; /* .. and where it shows */
} oct_tile;

enum { OCT_MAX_TILES = 4 };

typedef struct oct_scene {
    oct_area part; /* of the first picture, in its pixels; may reach beyond it */
    double width, height;
    oct_tile tile[OCT_MAX_TILES];
    int n_tiles;
    oct_matrix view; /* from the canvas to the network's input */
    bool by_centre;  /* boxes whose centres do not show are dropped */
} oct_scene;

/* What all samples share; read-only while they are made. */
typedef struct oct_sampler {
    const oct_train_labels *labels;
    const oct_preprocess *p;
    oct_augment numbers, closed; /* `closed`: for the last epochs */
    int32_t max_boxes;
} oct_sampler;

/* What a thread reuses from sample to sample. */
typedef struct oct_scratch {
    oct_picture_user user;
    uint8_t *canvas, *other; /* pixels before a warp; the other picture of a mixup */
    size_t canvas_size, other_size;
    oct_train_box *boxes;
    size_t cap_boxes;
} oct_scratch;

typedef struct oct_sample {
    oct_ctx *ctx;
    const oct_sampler *sampler;
    const oct_augment *a;
    const oct_preprocess *p;
    oct_scratch *scratch;
    uint64_t key; /* of its random numbers */
    int64_t index;
    const oct_image *im; /* the first picture */
    oct_scene scene;
    oct_rgb pixels;            /* of the network's size */
    size_t first_box, n_boxes; /* scratch->boxes[first_box .. n_boxes) are this sample's */
} oct_sample;

typedef struct oct_augment_row {
    const char *name, *help;
    oct_status (*arrange)(oct_sample *s, oct_rng *r); /* NULL: it does not */
    oct_status (*change)(oct_sample *s, oct_rng *r);
} oct_augment_row;

const oct_augment_row *oct_augment_row_at(int i); /* NULL beyond the end */

/* What becomes of one picture. */
typedef struct oct_sample_job {
    uint64_t key;
    int64_t index; /* of the picture */
    bool is_closed;
    uint8_t *rgb;     /* width * height * 3 bytes of the network's input */
    float *labels;    /* [max_boxes, 5], or NULL .. */
    int64_t *picture; /* .. and then the class of the picture */
} oct_sample_job;

/* Makes a sample; *n_boxes used rows, *n_dropped had none. */
oct_status oct_sample_make(oct_ctx *ctx, const oct_sampler *sampler, oct_scratch *scratch,
                           const oct_sample_job *job, int32_t *n_boxes, int32_t *n_dropped);
void oct_scratch_free(oct_scratch *s, oct_ctx *ctx);

/* --- for the rows --- */

uint64_t oct_key_mix(uint64_t key, uint64_t with); /* the key of something that belongs to `key` */
bool oct_chance(oct_rng *r, double probability);   /* draws one number */
double oct_between(oct_rng *r, double lo, double hi);

/* Any picture of the dataset that can be decoded; with_boxes: it has some, if one is found soon. */
oct_status oct_sample_draw(oct_sample *s, oct_rng *r, bool with_boxes, int64_t *index,
                           const oct_image **out);

/* The scene's one picture (or the part of it) as the network's preprocessing would place it. */
void oct_scene_fit(oct_scene *scene, const oct_preprocess *p, const oct_image *im, int64_t index);

/* Pixels and boxes of a scene (scene.c); boxes are clipped, and dropped by the settings keep_*. */
oct_status oct_scene_draw(oct_sample *s);

/* Draws the whole picture at `at` (rounded to pixels), where `clip` lets it show. */
oct_status oct_paste(oct_ctx *ctx, oct_interpolation interpolation, const oct_image *im,
                     oct_area at, oct_area clip, const oct_rgb *to);
void oct_fill(const oct_rgb *to, uint8_t level);
double oct_round_to_pixel(double v);

/* `to` = `from` seen through m (bilinear); beyond its border is grey of this level (warp.c). */
void oct_warp(const oct_rgb *from, const oct_matrix *m, uint8_t level, const oct_rgb *to);

/* Mirrors pixels and the sample's own boxes (augment_flip.c). */
void oct_flip_lr(oct_sample *s);

/* Runs the rows of one sample up to and including drawing; mixup uses it for its other picture. */
oct_status oct_sample_arrange(oct_sample *s);

#endif
