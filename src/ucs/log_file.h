// SPDX-License-Identifier: BSD-3-Clause
// Where log lines end: the stream of the process or the file that UCX_LOG_FILE names (stdout,
// stderr, file:PATH or PATH; standard error by default). UCX_LOG_FILE_SIZE and UCX_LOG_FILE_ROTATE
// keep a file short; only lines of the sources that UCX_LOG_FILE_FILTER names are written.
#pragma once

#include <string>

namespace ucs::log {

// What a line has before its text.
struct origin {
    const char *file; // as the compiler names it
    unsigned line;
    const char *component; // the log's owner: UCX, or the caller's name
    const char *level;     // its name, in capitals
};

// Writes one line, in UCX's form.
void print(const origin &from, const char *text);

// A path in which %h is the host and %p the process.
std::string expanded(const char *pattern);

} // namespace ucs::log
