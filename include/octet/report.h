/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * The report on a network that was quantized or trained: one HTML file that needs nothing beside
 * it.
 */
#ifndef OCTET_REPORT_H
#define OCTET_REPORT_H

#include <octet/analyze.h>
#include <octet/eval.h>
#include <octet/prune.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Time of one layer in both networks. */
typedef struct oct_report_time {
    const char *layer;
    double float_ms, int8_ms; /**< < 0: the layer is not in that network */
} oct_report_time;

/** A picture with what both networks found; JPEG or PNG files in memory. */
typedef struct oct_report_picture {
    const char *name;
    const void *float_data, *int8_data;
    size_t float_size, int8_size;
} oct_report_picture;

/** A picture and what both networks found on it; the page draws the boxes and compares them. */
typedef struct oct_report_scene {
    const char *name;
    const void *data; /**< JPEG or PNG file in memory */
    size_t size;
    int32_t width, height; /**< in the pixels that boxes are given in */
    const oct_detection *float_found, *int8_found;
    int32_t n_float, n_int8;
} oct_report_scene;

/** A step of one of the networks with its time. */
typedef struct oct_report_step {
    const char *layer, *op, *kernel;
    double ms, p10_ms, p90_ms; /**< median, and what a tenth of the runs is below and above */
    int32_t is_int8_network;   /**< 0: of the float network */
    int32_t is_move;           /**< 1: only moves or converts data */
} oct_report_step;

/** What an epoch of training gave. */
typedef struct oct_report_epoch {
    int32_t epoch;                   /**< from 1 */
    double loss, parts[8], rate;     /**< means of the loss; the rate at the end */
    double accuracy, other_accuracy; /**< AP and AP50, or top 1; < 0: not measured */
    double seconds;
} oct_report_epoch;

/** One of several networks that are compared, measured on its file. */
typedef struct oct_report_network {
    const char *name, *file;         /**< "calibrated" */
    double accuracy, other_accuracy; /**< AP and AP50, or top 1 and top 5; < 0: not measured */
    int64_t bytes;                   /**< of the file */
    double ms;                       /**< median time of one picture */
} oct_report_network;

/** Settings that a search tried: see octet/tune.h. */
typedef struct oct_report_trial {
    int64_t id;
    const char *settings;
    double score, ms;
    int64_t bytes, images;
    int32_t round, is_float, is_front, is_best;
} oct_report_trial;

/** All that a report shows. Parts that are NULL, or < 0, are left out of it. */
typedef struct oct_report {
    size_t struct_size;     /**< set by oct_report_init() */
    const char *title;      /**< "yolov8n" */
    const char *float_path; /**< as the user wrote it */
    const char *int8_path;
    int64_t float_bytes, int8_bytes; /**< sizes of the files */
    double float_ms, int8_ms;        /**< median time of one picture */
    int32_t threads;                 /**< while measuring */
    const oct_eval_result *float_accuracy, *int8_accuracy;
    int32_t is_classifier;    /**< which half of these counts */
    const char *accuracy_set; /**< "320 pictures of val2017" */
    const oct_graph *graph;   /**< the quantized network, to draw */
    const oct_analysis *analysis;
    const oct_quantize_summary *summary;
    const oct_report_time *times;
    int32_t n_times;
    const oct_report_picture *pictures;
    int32_t n_pictures;
    const char *recipe;   /**< YAML that makes it again */
    const char *command;  /**< the command line */
    const char *machine;  /**< CPU and instruction sets, in words */
    const char *versions; /**< octet's and its libraries' */

    const oct_box_eval *float_boxes, *int8_boxes; /**< finished: classes and curves */
    const oct_box_noise *noise;                   /**< of both, paired */
    double float_p10_ms, float_p90_ms;            /**< spread of float_ms */
    double int8_p10_ms, int8_p90_ms;
    int32_t runs;    /**< of each network */
    int32_t cpus;    /**< of the machine */
    double cpu_load; /**< load average before measuring */
    const oct_report_step *steps;
    int32_t n_steps;
    const oct_report_scene *scenes; /**< worst first */
    int32_t n_scenes, scenes_seen;  /**< of how many pictures they are the worst */
    float scene_score;              /**< boxes with less are not shown */
    const char *const *class_names; /**< of the scenes' boxes */
    int32_t n_class_names;
    /** Sizes of the elements of the arrays above, so that these may grow; by oct_report_init(). */
    size_t time_size, picture_size, step_size, scene_size;
    const oct_report_epoch *epochs; /**< of training, in order: curves */
    int32_t n_epochs;
    int32_t epochs_planned;             /**< 0: not known */
    int32_t best_epoch;                 /**< whose network was kept; 0: the last one's */
    const char *const *loss_parts;      /**< names of the parts of the loss; NULL at the end */
    size_t epoch_size;                  /**< as the sizes above */
    const oct_report_network *networks; /**< steps on the way to the trained one */
    int32_t n_networks;
    size_t network_size;            /**< as the sizes above */
    const oct_prune_result *pruned; /**< layers before and after pruning; NULL: none were */
    const oct_report_trial *trials; /**< of a search, those with results */
    int32_t n_trials;
    size_t trial_size;                /**< as the sizes above */
    const char *score_name;           /**< what their score is */
    const oct_compare_result *repeat; /**< shown where there is no accuracy; NULL: not measured */
} oct_report;

OCT_API void oct_report_init_sized(oct_report *r, size_t struct_size);

static inline void oct_report_init(oct_report *r)
{
    oct_report_init_sized(r, sizeof(*r));
    r->time_size = sizeof(oct_report_time);
    r->picture_size = sizeof(oct_report_picture);
    r->step_size = sizeof(oct_report_step);
    r->scene_size = sizeof(oct_report_scene);
    r->epoch_size = sizeof(oct_report_epoch);
    r->network_size = sizeof(oct_report_network);
    r->trial_size = sizeof(oct_report_trial);
}

/**
 * Writes DIR/index.html (the folder is made), to a temporary name that is renamed when whole. All
 * that the report points to is needed during the call only.
 */
OCT_API oct_status oct_report_write(oct_ctx *ctx, const oct_report *r, const char *dir);

#ifdef __cplusplus
}
#endif

#endif
