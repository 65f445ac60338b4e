/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers that families of networks are trained with by their own projects.
 *
 * Where octet differs from the projects: sizes of the input other than the network's own are not
 * drawn (plans have fixed shapes); colours change after mixup, for all families; a picture of
 * which no box is left stays as it is, without boxes.
 */
#include <stdio.h>
#include <string.h>

#include "augment/augment.h"

/* What Ultralytics' box_candidates() keeps. */
static void set_keep(oct_augment *a, double aspect)
{
    a->keep_side = 2;
    a->keep_area = 0.1;
    a->keep_aspect = aspect;
}

static void set_none(oct_augment *a)
{
    (void)a;
}

static void set_light(oct_augment *a)
{
    a->affine = 1;
    a->translate = 0.1;
    a->scale_min = 0.8;
    a->scale_max = 1.2;
    a->hsv = 1;
    a->hsv_h = 0.01;
    a->hsv_s = 0.3;
    a->hsv_v = 0.2;
    a->flip_lr = 0.5;
    set_keep(a, 100);
}

static void set_ultralytics(oct_augment *a)
{
    a->mosaic = 1;
    a->affine = 1;
    a->translate = 0.1;
    a->scale_min = 0.5;
    a->scale_max = 1.5;
    a->mixup_beta = 32; /* mixup itself is off */
    a->mixup_whole = 1;
    a->hsv = 1;
    a->hsv_h = 0.015;
    a->hsv_s = 0.7;
    a->hsv_v = 0.4;
    a->flip_lr = 0.5;
    a->close = 10;
    set_keep(a, 100);
}

static void set_yolox(oct_augment *a)
{
    a->mosaic = 1;
    a->affine = 1;
    a->affine_corner = 1;
    a->degrees = 10;
    a->translate = 0.1;
    a->scale_min = 0.1;
    a->scale_max = 2;
    a->shear = 2;
    a->mixup = 1;
    a->mixup_scale_min = 0.5;
    a->mixup_scale_max = 1.5;
    a->mixup_flip = 0.5;
    a->hsv_add = 1;
    a->hsv_add_h = 5;
    a->hsv_add_s = 30;
    a->hsv_add_v = 30;
    a->flip_lr = 0.5;
    a->keep_side = 1;
    a->close = 15;
    a->close_affine = 1;
}

static void set_yolo_nas(oct_augment *a)
{
    a->affine = 1;
    a->translate = 0.25;
    a->scale_min = 0.5;
    a->scale_max = 1.5;
    a->mixup = 0.5;
    a->mixup_scale_min = 0.5;
    a->mixup_scale_max = 1.5;
    a->mixup_flip = 0.5;
    a->swap_channels = 0.5;
    a->hsv_add = 0.5;
    a->hsv_add_h = 18;
    a->hsv_add_s = 30;
    a->hsv_add_v = 30;
    a->flip_lr = 0.5;
    set_keep(a, 20);
}

static void set_nanodet(oct_augment *a)
{
    a->affine = 1;
    a->translate = 0.2;
    a->scale_min = 0.6;
    a->scale_max = 1.4;
    a->stretch_min = 0.8;
    a->stretch_max = 1.2;
    a->jitter = 0.5;
    a->brightness_add = 0.2;
    a->contrast_min = 0.6;
    a->contrast_max = 1.4;
    a->saturation_min = 0.5;
    a->saturation_max = 1.2;
    a->flip_lr = 0.5;
}

/* Also SSD's own: PaddleDetection took it from there. Its "brightness" adds one grey level. */
static void set_picodet(oct_augment *a)
{
    a->expand = 0.5;
    a->crop = 1;
    a->jitter = 0.5;
    a->contrast_min = 0.5;
    a->contrast_max = 1.5;
    a->saturation_min = 0.5;
    a->saturation_max = 1.5;
    a->hue_degrees = 18;
    a->flip_lr = 0.5;
}

static void set_classifier(oct_augment *a)
{
    a->crop = 1;
    a->crop_scale_min = 0.28; /* 8% of the area, as torchvision's RandomResizedCrop */
    a->crop_aspect = 4.0 / 3;
    a->flip_lr = 0.5;
}

static const oct_augment_preset presets[] = {
    {"none", "pictures as the network sees them in use", " ", set_none},
    {"light", "small shifts, sizes and colours, mirror images", " detr nms ", set_light},
    {"ultralytics", "YOLOv8, YOLO11: mosaic, sizes, colours, mirror images", " yolov8 yolov5 ",
     set_ultralytics},
    {"yolox", "YOLOX: mosaic, rotation, sizes, mixup, colours, mirror images", " yolox ",
     set_yolox},
    {"yolo_nas", "YOLO-NAS: sizes, mixup, colours, mirror images", " yolo-nas ", set_yolo_nas},
    {"nanodet", "NanoDet-Plus: sizes, proportions, brightness, mirror images", " nanodet ",
     set_nanodet},
    {"picodet", "PicoDet, PP-YOLOE, SSD: parts, borders, colours, mirror images", " picodet ssd ",
     set_picodet},
    {"classifier", "classifiers: parts and mirror images", " classifier ", set_classifier},
};

const oct_augment_preset *oct_augment_preset_at(int i)
{
    return i >= 0 && (size_t)i < OCT_COUNT(presets) ? &presets[i] : NULL;
}

const oct_augment_preset *oct_augment_preset_find(const char *name)
{
    for (size_t i = 0; i < OCT_COUNT(presets); i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

const oct_augment_preset *oct_augment_preset_of(const char *family)
{
    char word[64];

    (void)snprintf(word, sizeof(word), " %s ", family ? family : "?");
    for (size_t i = 0; i < OCT_COUNT(presets); i++)
        if (strstr(presets[i].families, word)) return &presets[i];
    return oct_augment_preset_find("light");
}

void oct_augment_init(oct_augment *a, const oct_augment_preset *p)
{
    const oct_augment_setting *s;

    for (int i = 0; (s = oct_augment_setting_at(i)); i++)
        *oct_augment_number(a, i) = s->value;
    if (p) p->set(a);
}
