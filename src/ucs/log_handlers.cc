// SPDX-License-Identifier: BSD-3-Clause
// The stack of log handlers and its calls: see ucs/debug/log_def.h and log_handlers.h. Handlers may
// log, push and pop, so no lock is held while one runs.
#include "ucs/log_handlers.h"

#include "ucs/compiler.h"
#include "ucs/log.h"
#include "ucs/log_file.h"
#include "ucs/other_ucx.h"

#include <atomic>
#include <cstdio>
#include <dlfcn.h>
#include <iterator>
#include <mutex>

namespace {

constexpr unsigned most_handlers = 32;
constexpr const char *level_names[] = {"FATAL", "ERROR", "WARN",  "DIAG", "INFO", "DEBUG", "TRACE",
                                       "REQ",   "DATA",  "ASYNC", "FUNC", "POLL", "",      "PRINT"};

ucs_log_func_rc_t print_line(const char *file, unsigned line, const char *, ucs_log_level_t level,
                             const ucs_log_component_config_t *comp_conf, const char *message,
                             va_list ap)
{
    if (level > comp_conf->log_level && level != UCS_LOG_LEVEL_PRINT) {
        return UCS_LOG_FUNC_RC_CONTINUE;
    }
    char text[1024];
    vsnprintf(text, sizeof(text), message, ap);
    auto known = static_cast<unsigned>(level) < std::size(level_names);
    ucs::log::print({file, line, comp_conf->name, known ? level_names[level] : ""}, text);
    return UCS_LOG_FUNC_RC_CONTINUE;
}

// Lines are logged before constructors ran.
constinit std::mutex stack_mutex;
constinit std::atomic<ucs_log_func_t> stack[most_handlers] = {print_line};
constinit std::atomic<unsigned> stack_size = 1;

} // namespace

extern "C" {

UCS_EXPORT void ucs_log_dispatch(const char *file, unsigned line, const char *function,
                                 ucs_log_level_t level, ucs_log_component_config_t *comp_conf,
                                 const char *format, ...)
{
    ucs_log_func_rc_t rc = UCS_LOG_FUNC_RC_CONTINUE;
    for (unsigned i = stack_size.load(); i > 0 && rc == UCS_LOG_FUNC_RC_CONTINUE; --i) {
        va_list ap;
        va_start(ap, format);
        rc = stack[i - 1].load()(file, line, function, level, comp_conf, format, ap);
        va_end(ap);
    }
}

UCS_EXPORT void ucs_log_push_handler(ucs_log_func_t handler)
{
    if (ucs::is_other_ucs(__builtin_return_address(0))) {
        return; // what it prints by comes to the handler that is here, and would print all twice
    }
    std::lock_guard lock(stack_mutex);
    unsigned size = stack_size.load();
    if (handler && size < most_handlers) {
        stack[size].store(handler);
        stack_size.store(size + 1);
    }
}

UCS_EXPORT void ucs_log_pop_handler(void)
{
    std::lock_guard lock(stack_mutex);
    unsigned size = stack_size.load();
    if (size > 0) {
        stack_size.store(size - 1);
    }
}

UCS_EXPORT unsigned ucs_log_num_handlers(void)
{
    return stack_size.load();
}

} // extern "C"

namespace ucs::log {

// The dispatcher of another library, if a program pushed a handler there.
static decltype(&ucs_log_dispatch) other_dispatcher()
{
    auto count = reinterpret_cast<decltype(&ucs_log_num_handlers)>(
        dlsym(RTLD_DEFAULT, "ucs_log_num_handlers"));
    if (!count || count == ucs_log_num_handlers || count() < 2) {
        return nullptr;
    }
    return reinterpret_cast<decltype(&ucs_log_dispatch)>(dlsym(RTLD_DEFAULT, "ucs_log_dispatch"));
}

void hand_out(ucs_log_level_t level, const char *file, unsigned line, const char *function,
              const char *text)
{
    ucs_log_component_config_t own = {static_cast<ucs_log_level_t>(current_level), "UCX", "*"};
    auto *other = other_dispatcher();
    auto dispatch = other ? other : ucs_log_dispatch;
    dispatch(file, line, function, level, &own, "%s", text);
}

} // namespace ucs::log
