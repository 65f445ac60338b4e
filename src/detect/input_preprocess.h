/* SPDX-License-Identifier: Apache-2.0 */
/* What pictures are made into for a network (see oct_graph_preprocess()). */
#ifndef OCT_DETECT_INPUT_PREPROCESS_H
#define OCT_DETECT_INPUT_PREPROCESS_H

#include <octet/detect.h>

#include "graph/graph.h"

/* Fails where the network's input has a fixed size, and this is another. */
oct_status oct_picture_check(const oct_graph *g, const oct_preprocess *p);

/* Writes into the network's metadata how its pictures are made: detectors read it from there. */
oct_status oct_preprocess_note(oct_graph *g, const oct_preprocess *p);

#endif
