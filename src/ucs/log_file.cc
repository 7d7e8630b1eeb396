// SPDX-License-Identifier: BSD-3-Clause
// The file behind the log: see log_file.h. A line is formatted into one buffer and written with one
// write(2), so lines of several threads and processes do not mix.
#include "ucs/log_file.h"

#include "ucs/config/config.h"
#include "ucs/sys.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fnmatch.h>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace ucs::log {
namespace {

// Without the domain.
const char *short_host_name()
{
    static const std::string &name =
        *new std::string(host_name(), 0, std::min<size_t>(host_name().find('.'), 63));
    return name.c_str();
}

const char *setting(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value && *value ? value : fallback;
}

// The path that UCX_LOG_FILE names, as PATH or file:PATH; empty for a stream of the process.
std::string path_of(const std::string &destination)
{
    constexpr std::string_view kind = "file:";
    if (destination == "stdout" || destination == "stderr") {
        return {};
    }
    if (destination.starts_with(kind)) {
        return destination.substr(kind.size(), destination.find(':', kind.size()) - kind.size());
    }
    return destination;
}

class log_file {
  public:
    explicit log_file(const std::string &destination)
        : stream_(destination == "stdout" ? STDOUT_FILENO : STDERR_FILENO),
          path_(path_of(destination)), filter_(setting("UCX_LOG_FILE_FILTER", "*"))
    {
        config::size_.parse(setting("UCX_LOG_FILE_SIZE", "inf"), &most_);
        config::uint_.parse(setting("UCX_LOG_FILE_ROTATE", "0"), &backups_);
        open_file();
    }

    bool shows(const char *source) const
    {
        return fnmatch(filter_.c_str(), source, 0) != FNM_NOMATCH;
    }

    void write(const char *line, size_t length)
    {
        if (most_ == config::memunits_inf || fd_ == stream_) {
            write_line(line, length);
            return;
        }
        std::lock_guard lock(mutex_);
        struct stat ours, named;
        if (fstat(fd_, &ours) == 0 && static_cast<size_t>(ours.st_size) + length >= most_) {
            // Another process, or another library of this one, may have begun the file anew.
            bool is_same = stat(path_.c_str(), &named) == 0 && named.st_ino == ours.st_ino;
            close(fd_);
            if (is_same) {
                move_away();
            }
            open_file();
        }
        write_line(line, length);
    }

  private:
    void open_file()
    {
        int fd = path_.empty()
                     ? -1
                     : open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
        fd_ = fd < 0 ? stream_ : fd;
    }

    // The file becomes PATH.1, PATH.1 becomes PATH.2, and the last one goes.
    void move_away()
    {
        if (backups_ == 0) {
            unlink(path_.c_str());
        }
        for (unsigned i = backups_; i > 0; --i) {
            std::string older = path_ + "." + std::to_string(i);
            std::string newer = i == 1 ? path_ : path_ + "." + std::to_string(i - 1);
            rename(newer.c_str(), older.c_str()); // fails where there is none yet
        }
    }

    // A log that cannot be written has nowhere to report that.
    void write_line(const char *line, size_t length) const
    {
        [[maybe_unused]] ssize_t written = ::write(fd_, line, length);
    }

    const int stream_; // that lines go to where no file can be written
    const std::string path_;
    const std::string filter_;
    size_t most_ = config::memunits_inf;
    unsigned backups_ = 0;
    int fd_ = -1;
    std::mutex mutex_;
};

} // namespace

std::string expanded(const char *pattern)
{
    std::string path;
    for (const char *p = pattern; *p; ++p) {
        if (p[0] == '%' && (p[1] == 'h' || p[1] == 'p')) {
            path += p[1] == 'h' ? short_host_name() : std::to_string(getpid());
            ++p;
        } else {
            path += *p;
        }
    }
    return path;
}

void print(const origin &from, const char *text)
{
    // Never destroyed: other objects log while the process ends.
    static log_file &file = *new log_file(expanded(setting("UCX_LOG_FILE", "stderr")));
    if (!file.shows(from.file)) {
        return;
    }
    const char *base = strrchr(from.file, '/');
    timeval now;
    gettimeofday(&now, nullptr);
    char buffer[1280];
    int length =
        snprintf(buffer, sizeof(buffer), "[%lu.%06lu] [%s:%d:%ld] %16s:%-4u %-4s %-5s %s\n",
                 static_cast<unsigned long>(now.tv_sec), static_cast<unsigned long>(now.tv_usec),
                 short_host_name(), getpid(), syscall(SYS_gettid), base ? base + 1 : from.file,
                 from.line, from.component, from.level, text);
    file.write(buffer, std::min(static_cast<size_t>(length), sizeof(buffer) - 1));
}

} // namespace ucs::log
