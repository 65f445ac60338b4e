/* SPDX-License-Identifier: Apache-2.0 */
/** \file
 * How far the values of a quantized network are from those of the float one.
 */
#ifndef OCTET_ERROR_H
#define OCTET_ERROR_H

#include <octet/ctx.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * All four are taken over all pictures together. The size of this struct is fixed, so that others
 * may contain it: figures to come take the place of reserved ones.
 */
typedef struct oct_error {
    double noise;       /**< error power / signal power; < 0: not measured */
    double cosine;      /**< of the angle between both; 1: the same direction */
    double mse;         /**< mean squared error */
    double kl;          /**< divergence of their histograms, in nats */
    double reserved[4]; /**< 0 */
} oct_error;

#ifdef __cplusplus
}
#endif

#endif
