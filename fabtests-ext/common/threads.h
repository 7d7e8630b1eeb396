// SPDX-License-Identifier: BSD-3-Clause
//
// The threads of this process.
#pragma once

#include <chrono>
#include <cstddef>
#include <dirent.h>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>

// A sanitizer starts a thread of its own with the first of ours.
inline void let_sanitizer_start_its_thread()
{
    pid_t id = 0;
    std::thread([&] { id = gettid(); }).join();
    std::string entry = "/proc/self/task/" + std::to_string(id);
    while (access(entry.c_str(), F_OK) == 0) {
        sched_yield();
    }
}

inline size_t threads_now()
{
    static const bool started = (let_sanitizer_start_its_thread(), true);
    static_cast<void>(started);
    size_t count = 0;
    DIR *all = opendir("/proc/self/task");
    while (const dirent *entry = all ? readdir(all) : nullptr) {
        count += entry->d_name[0] != '.';
    }
    if (all) {
        closedir(all);
    }
    return count;
}

// A thread that was joined stays in the list for a moment. Their number in the end.
inline size_t threads_down_to(size_t expected)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    size_t count;
    while ((count = threads_now()) != expected && std::chrono::steady_clock::now() < end) {
        sched_yield();
    }
    return count;
}
