/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Types of configuration values, and the socket address that calls take.
 */
#ifndef UCS_CONFIG_TYPES_H
#define UCS_CONFIG_TYPES_H

#include <sys/socket.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/** Weight of a log line: a level lets itself and all before it through (UCX_LOG_LEVEL). */
typedef enum {
    UCS_LOG_LEVEL_FATAL,       /**< The process ends. */
    UCS_LOG_LEVEL_ERROR,       /**< A call fails. */
    UCS_LOG_LEVEL_WARN,        /**< Something is wrong, the call goes on. */
    UCS_LOG_LEVEL_DIAG,        /**< Something was adjusted or recovered silently. */
    UCS_LOG_LEVEL_INFO,        /**< What was chosen. */
    UCS_LOG_LEVEL_DEBUG,       /**< Control path, few lines. */
    UCS_LOG_LEVEL_TRACE,       /**< Control path, many lines. */
    UCS_LOG_LEVEL_TRACE_REQ,   /**< Each request. */
    UCS_LOG_LEVEL_TRACE_DATA,  /**< Each message on the wire. */
    UCS_LOG_LEVEL_TRACE_ASYNC, /**< The thread that waits for events. */
    UCS_LOG_LEVEL_TRACE_FUNC,  /**< Each call. */
    UCS_LOG_LEVEL_TRACE_POLL,  /**< Each poll. */
    UCS_LOG_LEVEL_LAST,        /**< Number of levels that can be configured. */
    UCS_LOG_LEVEL_PRINT        /**< Always printed. */
} ucs_log_level_t;

/** What drives the events of an async context. */
typedef enum {
    UCS_ASYNC_MODE_SIGNAL, /**< A signal handler. */
    UCS_ASYNC_MODE_THREAD, /**< Old name of the next. */
    UCS_ASYNC_MODE_THREAD_SPINLOCK =
        UCS_ASYNC_MODE_THREAD,   /**< A thread; users are kept out by a spin lock. */
    UCS_ASYNC_MODE_THREAD_MUTEX, /**< A thread; users are kept out by a mutex. */
    UCS_ASYNC_MODE_POLL,         /**< No thread; the user's calls alone poll. */
    UCS_ASYNC_MODE_LAST          /**< Number of modes. */
} ucs_async_mode_t;

/** A switch that may be left to the library. */
typedef enum ucs_ternary_auto_value {
    UCS_NO = 0,      /**< Off. */
    UCS_YES = 1,     /**< On; an error where that is not possible. */
    UCS_TRY = 2,     /**< On where possible. */
    UCS_AUTO = 3,    /**< The library decides. */
    UCS_TERNARY_LAST /**< Number of values. */
} ucs_ternary_auto_value_t;

/** On, off, or left to the library. */
typedef enum ucs_on_off_auto_value {
    UCS_CONFIG_OFF = 0,    /**< Off. */
    UCS_CONFIG_ON = 1,     /**< On. */
    UCS_CONFIG_AUTO = 2,   /**< The library decides. */
    UCS_CONFIG_ON_OFF_LAST /**< Number of values. */
} ucs_on_off_auto_value_t;

/** What happens after a fatal error, before the process ends. */
typedef enum {
    UCS_HANDLE_ERROR_BACKTRACE, /**< The stack is printed. */
    UCS_HANDLE_ERROR_FREEZE,    /**< The process stops and waits for a debugger. */
    UCS_HANDLE_ERROR_DEBUG,     /**< A debugger is started. */
    UCS_HANDLE_ERROR_NONE,      /**< Nothing. */
    UCS_HANDLE_ERROR_LAST       /**< Number of values. */
} ucs_handle_error_t;

/** What a listing of a configuration shows; to be or-ed. */
typedef enum {
    UCS_CONFIG_PRINT_CONFIG = UCS_BIT(0), /**< Lines of the form NAME=value. */
    UCS_CONFIG_PRINT_HEADER = UCS_BIT(1), /**< A heading with the title. */
    UCS_CONFIG_PRINT_DOC = UCS_BIT(2),    /**< Comment lines that explain each name. */
    UCS_CONFIG_PRINT_HIDDEN = UCS_BIT(3), /**< Also names that are usually left out. */
    UCS_CONFIG_PRINT_COMMENT_DEFAULT =
        UCS_BIT(4) /**< Values that are the default are commented out. */
} ucs_config_print_flags_t;

/** Whether a switch asks for "on", strictly or not. */
static inline int ucs_ternary_auto_value_is_yes_or_try(ucs_ternary_auto_value_t value)
{
    return (value == UCS_YES) || (value == UCS_TRY);
}

/** Whether a switch leaves no choice to the library. */
static inline int ucs_ternary_auto_value_is_yes_or_no(ucs_ternary_auto_value_t value)
{
    return (value == UCS_YES) || (value == UCS_NO);
}

/** Member of a configuration structure that holds a list of @a _type values. */
#define UCS_CONFIG_ARRAY_FIELD(_type, _array_name)                                                 \
    struct {                                                                                       \
        _type *_array_name; /* the values */                                                       \
        unsigned count;     /* how many */                                                         \
        unsigned truncated; /* whether more were given */                                          \
    }

/** Member of a configuration structure that holds a list of strings. */
#define UCS_CONFIG_STRING_ARRAY_FIELD(_array_name) UCS_CONFIG_ARRAY_FIELD(char *, _array_name)

/** A list of names. */
typedef UCS_CONFIG_STRING_ARRAY_FIELD(names) ucs_config_names_array_t;

/** How a list of names is meant. */
typedef enum {
    UCS_CONFIG_ALLOW_LIST_ALLOW_ALL, /**< Everything is allowed. */
    UCS_CONFIG_ALLOW_LIST_ALLOW,     /**< The names of the list are allowed. */
    UCS_CONFIG_ALLOW_LIST_NEGATE     /**< All but the names of the list are allowed. */
} ucs_config_allow_list_mode_t;

/** A list of names that allows or forbids. */
typedef struct {
    ucs_config_names_array_t array;    /**< The names. */
    ucs_config_allow_list_mode_t mode; /**< How they are meant. */
} ucs_config_allow_list_t;

/**
 * @ingroup UCS_RESOURCE
 * @brief A socket address of the caller; read during the call it is given to.
 */
typedef struct ucs_sock_addr {
    const struct sockaddr *addr; /**< IPv4 or IPv6 address. */
    socklen_t addrlen;           /**< Its size in bytes. */
} ucs_sock_addr_t;

/** Where log lines of one part of the library go. */
typedef struct ucs_log_component_config {
    ucs_log_level_t log_level; /**< Level of this part. */
    char name[16];             /**< Name that its lines carry, 0-terminated. */
    const char *file_filter;   /**< Pattern of source file names whose lines are shown. */
} ucs_log_component_config_t;

END_C_DECLS

UCS_BEGIN_API

/** Names of the async modes, indexed by ucs_async_mode_t, ended by NULL. */
extern const char *ucs_async_mode_names[];

UCS_END_API

#endif
