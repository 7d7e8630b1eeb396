/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A program that takes the lines of the log for itself: built for UCX, run by dropin.sh with the
 * drop-in libraries and UCX's own libucs, or with both of ours.
 */
#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#include <stdio.h>
#include <string.h>

static char heard[256];

static ucs_log_func_rc_t handler(const char *file, unsigned line, const char *function,
                                 ucs_log_level_t level, const ucs_log_component_config_t *conf,
                                 const char *message, va_list ap)
{
    (void)file, (void)line, (void)function, (void)conf;
    if (level == UCS_LOG_LEVEL_ERROR) {
        vsnprintf(heard, sizeof(heard), message, ap);
    }
    return UCS_LOG_FUNC_RC_STOP;
}

int main(void)
{
    static char first[256];
    ucp_context_h context;

    ucs_log_push_handler(handler);
    if (ucp_init(NULL, NULL, &context) == UCS_OK) {
        return 1;
    }
    strcpy(first, heard);
    heard[0] = '\0';
    ucs_log_pop_handler();
    if (ucp_init(NULL, NULL, &context) == UCS_OK) {
        return 1;
    }
    printf("heard \"%s\", then \"%s\"\n", first, heard);
    if (strstr(first, "params must not be NULL") != NULL && heard[0] == '\0') {
        printf("PASS, interface %s\n", ucp_get_version_string());
    }
    return 0;
}
