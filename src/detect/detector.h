/* SPDX-License-Identifier: Apache-2.0 */
/* What other folders need of detectors beyond the public interface. */
#ifndef OCT_DETECT_DETECTOR_H
#define OCT_DETECT_DETECTOR_H

#include <octet/detect.h>

/*
 * A copy of the graph whose picture input has this size, so that recognising and planning have the
 * right shapes. Fails if the network does not support it.
 */
oct_status oct_detector_bind(const oct_graph *g, int32_t batch, int32_t width, int32_t height,
                             oct_graph **out);

/* A network made for so many pictures becomes one for any number, where only Reshape nodes stand in
 * the way. Types must be inferred. */
oct_status oct_detector_free_batch(oct_graph *g, int64_t batch);

/* As oct_detector_new(), where open sizes of the picture's input are those of `asked`; NULL: what
 * the file says, or 640x640. */
oct_status oct_detector_new_sized(const oct_graph *g, const char *family,
                                  const oct_preprocess *asked, oct_detector **out);

/* Fails if the family is recognised, but its outputs cannot be read: rotated boxes. */
oct_status oct_detector_check(const oct_detector *d);
oct_ctx *oct_detector_ctx(const oct_detector *d);

/* The input that takes the picture. */
oct_status oct_detector_input(const oct_graph *g, const oct_value **out);

#endif
