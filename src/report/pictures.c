/* SPDX-License-Identifier: Apache-2.0 */
/* Times and pictures as JSON. */
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "report/data.h"
#include "report/json.h"

enum { MAX_FOUND = 300 }; /* more boxes on a picture hide it */

#define SAME_IOU 0.5f /* boxes of one class that overlap as much are the same thing */

void oct_report_put_times(oct_str *out, const oct_report *r)
{
    oct_json_open(out, "times", '[');
    for (int32_t i = 0; r->times && i < r->n_times; i++) {
        oct_report_time t;

        oct_sized_element(&t, r->times, r->time_size, i, sizeof(t));
        oct_json_open(out, NULL, '[');
        oct_json_text(out, NULL, t.layer);
        oct_json_num(out, NULL, t.float_ms);
        oct_json_num(out, NULL, t.int8_ms);
        oct_json_close(out, ']');
    }
    oct_json_close(out, ']');
    oct_json_open(out, "steps", '[');
    for (int32_t i = 0; r->steps && i < r->n_steps; i++) {
        oct_report_step step;
        const oct_report_step *s = &step;

        oct_sized_element(&step, r->steps, r->step_size, i, sizeof(step));
        oct_json_open(out, NULL, '[');
        oct_json_int(out, NULL, s->is_int8_network != 0);
        oct_json_text(out, NULL, s->layer);
        oct_json_text(out, NULL, s->op);
        oct_json_text(out, NULL, s->kernel);
        oct_json_num(out, NULL, s->ms);
        oct_json_num(out, NULL, s->p10_ms);
        oct_json_num(out, NULL, s->p90_ms);
        oct_json_int(out, NULL, s->is_move != 0);
        oct_json_close(out, ']');
    }
    oct_json_close(out, ']');
}

/* --- pictures --- */

static void put_image(oct_str *out, const char *key, const void *data, size_t size)
{
    const bool is_png = size > 4 && memcmp(data, "\x89PNG", 4) == 0;

    if (!data) return;
    oct_json_base64(out, key, is_png ? "data:image/png;base64," : "data:image/jpeg;base64,", data,
                    size);
}

static void put_drawn(oct_str *out, const oct_report *r)
{
    oct_json_open(out, "pictures", '[');
    for (int32_t i = 0; r->pictures && i < r->n_pictures; i++) {
        oct_report_picture picture;
        const oct_report_picture *p = &picture;

        oct_sized_element(&picture, r->pictures, r->picture_size, i, sizeof(picture));
        oct_json_open(out, NULL, '{');
        oct_json_text(out, "name", p->name);
        put_image(out, "float", p->float_data, p->float_size);
        put_image(out, "int8", p->int8_data, p->int8_size);
        oct_json_close(out, '}');
    }
    oct_json_close(out, ']');
}

/* [x, y, width, height, score, class, partner]: tenths of a pixel are enough to draw. */
static void put_boxes(oct_str *out, const char *key, const oct_detection *found, int32_t n,
                      const int32_t *partner)
{
    oct_json_open(out, key, '[');
    for (int32_t i = 0; i < n; i++) {
        const float numbers[] = {found[i].x, found[i].y, found[i].width, found[i].height};

        oct_json_open(out, NULL, '[');
        for (size_t k = 0; k < OCT_COUNT(numbers); k++)
            oct_json_num(out, NULL, (double)numbers[k]);
        oct_json_num(out, NULL, (double)found[i].score);
        oct_json_int(out, NULL, found[i].category);
        oct_json_int(out, NULL, partner[i]);
        oct_json_close(out, ']');
    }
    oct_json_close(out, ']');
}

static void put_scene(oct_str *out, const oct_report_scene *s)
{
    const int32_t n[2] = {OCT_MIN(s->n_float, MAX_FOUND), OCT_MIN(s->n_int8, MAX_FOUND)};
    int32_t to_int8[MAX_FOUND], to_float[MAX_FOUND];

    oct_detections_match(s->float_found, n[0], s->int8_found, n[1], SAME_IOU, to_int8);
    for (int32_t k = 0; k < n[1]; k++)
        to_float[k] = -1;
    for (int32_t i = 0; i < n[0]; i++)
        if (to_int8[i] >= 0) to_float[to_int8[i]] = i;
    oct_json_open(out, NULL, '{');
    oct_json_text(out, "name", s->name);
    oct_json_int(out, "width", s->width);
    oct_json_int(out, "height", s->height);
    put_image(out, "image", s->data, s->size);
    put_boxes(out, "float", s->float_found, n[0], to_int8);
    put_boxes(out, "int8", s->int8_found, n[1], to_float);
    oct_json_close(out, '}');
}

void oct_report_put_pictures(oct_str *out, const oct_report *r)
{
    put_drawn(out, r);
    oct_json_open(out, "scenes", '[');
    for (int32_t i = 0; r->scenes && i < r->n_scenes; i++) {
        oct_report_scene scene;

        oct_sized_element(&scene, r->scenes, r->scene_size, i, sizeof(scene));
        put_scene(out, &scene);
    }
    oct_json_close(out, ']');
    oct_json_int(out, "scenesSeen", r->scenes_seen);
    oct_json_num(out, "sceneScore", (double)r->scene_score);
    oct_json_open(out, "classNames", '[');
    for (int32_t i = 0; r->scenes && r->class_names && i < r->n_class_names; i++)
        oct_json_text(out, NULL, r->class_names[i]);
    oct_json_close(out, ']');
}
