/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines and what handles them.
 */
#ifndef UCS_LOG_DEF_H_
#define UCS_LOG_DEF_H_

#include <stdarg.h>
#include <ucs/config/types.h>
#include <ucs/sys/compiler_def.h>

/** What becomes of a line after a handler. */
typedef enum {
    UCS_LOG_FUNC_RC_STOP,    /**< No other handler gets it. */
    UCS_LOG_FUNC_RC_CONTINUE /**< The next one does. */
} ucs_log_func_rc_t;

/**
 * @brief Handles a log line.
 *
 * @param file      Source file.
 * @param line      Line in it.
 * @param function  Function, may be empty.
 * @param level     Level of the line.
 * @param comp_conf The log it belongs to; valid during the call.
 * @param message   Text with conversions as of printf.
 * @param ap        What they convert.
 */
typedef ucs_log_func_rc_t (*ucs_log_func_t)(const char *file, unsigned line, const char *function,
                                            ucs_log_level_t level,
                                            const ucs_log_component_config_t *comp_conf,
                                            const char *message, va_list ap);

UCS_BEGIN_API

/**
 * @brief Give a line to the handlers, the one that was pushed last first. The one at the bottom
 * writes it to standard error or to UCX_LOG_FILE unless its level is above that of @a comp_conf.
 *
 * @param file      Source file.
 * @param line      Line in it.
 * @param function  Function.
 * @param level     Level of the line.
 * @param comp_conf The log it belongs to: its level, its name.
 * @param format    As of printf.
 */
void ucs_log_dispatch(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                      ucs_log_component_config_t *comp_conf, const char *format, ...)
    UCS_F_PRINTF(6, 7);

/** Put a handler before the others; without effect when there are 32. Lines of the library go
 * through it, too. */
void ucs_log_push_handler(ucs_log_func_t handler);

/** Take the handler that was pushed last away; without any, lines are lost. */
void ucs_log_pop_handler(void);

/** How many handlers there are; one, to begin with. */
unsigned ucs_log_num_handlers(void);

UCS_END_API

#endif
