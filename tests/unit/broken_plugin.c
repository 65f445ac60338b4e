/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of version PLUGIN_ABI; -1: a library that is no plugin. */
#include <octet/octet.h>

#if PLUGIN_ABI >= 0
OCT_API int32_t octet_plugin_abi(void);
OCT_API int32_t octet_plugin_abi(void)
{
    return PLUGIN_ABI;
}
OCT_API oct_status octet_plugin_init(oct_ctx *ctx);
OCT_API oct_status octet_plugin_init(oct_ctx *ctx)
{
    (void)ctx;
    return OCT_OK;
}
#else
OCT_API int nothing_of_a_plugin(void);
OCT_API int nothing_of_a_plugin(void)
{
    return 0;
}
#endif
