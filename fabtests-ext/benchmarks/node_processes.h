// SPDX-License-Identifier: BSD-3-Clause
//
// Many processes of one node, each with a UCP worker, and a board in memory that they share: the
// workers' addresses, and words to sleep on.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <functional>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace node_processes {

constexpr unsigned most_processes = 4096;
constexpr ucp_tag_t pair_tag = 1, silent_tag = 2;

inline void must(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "process %d: %s failed\n", getpid(), what);
        _exit(1);
    }
}

// A count that other processes sleep on. A process wakes when the value has the low bits of what it
// waits for, so that hundreds that wait for the last one are not woken by each before.
class counter {
  public:
    uint32_t raise()
    {
        uint32_t now = ++value_;
        syscall(SYS_futex, &value_, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, bit_of(now));
        return now;
    }
    void wait_for(uint32_t least)
    {
        for (uint32_t seen; (seen = value_) < least;) {
            syscall(SYS_futex, &value_, FUTEX_WAIT_BITSET, seen, nullptr, nullptr, bit_of(least));
        }
    }
    uint32_t value() const { return value_; }

  private:
    static uint32_t bit_of(uint32_t value) { return uint32_t(1) << value % 32; }

    std::atomic<uint32_t> value_;
};
static_assert(sizeof(counter) == sizeof(uint32_t));

struct usage {
    double seconds; // of the processor
    double pss;     // bytes
    unsigned descriptors;
    unsigned threads;
};

struct board {
    static board &make()
    {
        void *memory =
            mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        must(memory != MAP_FAILED, "mmap");
        return *static_cast<board *>(memory);
    }
    void arrive() { arrived.raise(); }

    counter arrived, turn, left;
    int all_left; // an eventfd of all: readable when all have left
    std::atomic<bool> stop;
    double times[1024];
    struct {
        uint32_t address_length;
        char address[500];
        std::atomic<uint64_t> count;
        usage use;
    } of[most_processes];
};

class side {
  public:
    side(board &b, unsigned id, unsigned count) : shared(b)
    {
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
        must(ucp_init(&params, nullptr, &context) == UCS_OK, "ucp_init");
        ucp_worker_params_t worker_params = {};
        must(ucp_worker_create(context, &worker_params, &worker) == UCS_OK, "ucp_worker_create");
        ucp_address_t *address;
        size_t length;
        must(ucp_worker_get_address(worker, &address, &length) == UCS_OK, "ucp_worker_get_address");
        must(length <= sizeof(shared.of[id].address), "an address of that length");
        memcpy(shared.of[id].address, address, length);
        ucp_worker_release_address(worker, address);
        shared.arrive();
        shared.arrived.wait_for(count);
    }

    ucp_ep_h connect(unsigned to)
    {
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
        params.address = reinterpret_cast<const ucp_address_t *>(shared.of[to].address);
        ucp_ep_h ep = nullptr;
        must(ucp_ep_create(worker, &params, &ep) == UCS_OK, "ucp_ep_create");
        return ep;
    }
    ucs_status_ptr_t send(ucp_ep_h to, const uint64_t *word, ucp_tag_t tag)
    {
        return ucp_tag_send_nbx(to, word, sizeof(*word), tag, &param_);
    }
    ucs_status_ptr_t receive(uint64_t *word, ucp_tag_t tag)
    {
        return ucp_tag_recv_nbx(worker, word, sizeof(*word), tag, UINT64_MAX, &param_);
    }
    ucs_status_ptr_t flush() { return ucp_worker_flush_nbx(worker, &param_); }

    void finish(ucs_status_ptr_t request, bool sleep = false)
    {
        ucs_status_t status = UCS_PTR_STATUS(request);
        if (UCS_PTR_IS_PTR(request)) {
            while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
                if (ucp_worker_progress(worker) == 0 && sleep) {
                    ucp_worker_wait(worker);
                }
            }
            ucp_request_free(request);
        }
        must(status == UCS_OK, "an operation");
    }
    // Others may still need an answer.
    void leave_together(unsigned count)
    {
        if (shared.left.raise() == count) {
            uint64_t one = 1;
            must(write(shared.all_left, &one, sizeof(one)) == sizeof(one), "write");
        }
        int worker_event;
        must(ucp_worker_get_efd(worker, &worker_event) == UCS_OK, "ucp_worker_get_efd");
        pollfd events[] = {{worker_event, POLLIN, 0}, {shared.all_left, POLLIN, 0}};
        while (shared.left.value() < count) {
            if (ucp_worker_progress(worker) == 0 && ucp_worker_arm(worker) == UCS_OK) {
                poll(events, 2, -1);
            }
        }
    }

    board &shared;
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;

  private:
    const ucp_request_param_t param_ = {};
};

class processes {
  public:
    processes(board &shared, unsigned count, const std::function<void(side &, unsigned)> &live)
    {
        must(count <= most_processes, "so many processes");
        fflush(stdout);
        for (unsigned id = 0; id < count; ++id) {
            pid_t pid = fork();
            if (pid == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                side self(shared, id, count);
                live(self, id);
                _exit(0);
            }
            must(pid > 0, "fork");
            pids_.push_back(pid);
        }
    }
    processes(const processes &) = delete;
    processes &operator=(const processes &) = delete;
    ~processes()
    {
        for (pid_t pid : pids_) {
            kill(pid, SIGKILL);
        }
        for (pid_t pid : pids_) {
            waitpid(pid, nullptr, 0);
        }
    }

    // For the first ones. False: one has failed.
    bool wait(unsigned count)
    {
        for (unsigned ended = 0; ended < count;) {
            int status = 0;
            pid_t pid = waitpid(-1, &status, 0);
            std::erase(pids_, pid);
            if (pid < 0 || status != 0) {
                return false;
            }
            ++ended;
        }
        return true;
    }

  private:
    std::vector<pid_t> pids_;
};

inline double number_after(const char *file, const char *name)
{
    char line[256];
    double value = 0;
    FILE *from = fopen(file, "r");
    while (from && fgets(line, sizeof(line), from)) {
        if (!strncmp(line, name, strlen(name))) {
            value = strtod(line + strlen(name), nullptr);
        }
    }
    if (from) {
        fclose(from);
    }
    return value;
}

inline double processor_seconds()
{
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    auto seconds = [](const timeval &t) { return double(t.tv_sec) + double(t.tv_usec) / 1e6; };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// since: processor_seconds() then
inline usage measure(double since)
{
    double seconds = processor_seconds() - since;
    unsigned descriptors = 0;
    if (DIR *all = opendir("/proc/self/fd")) {
        while (const dirent *entry = readdir(all)) {
            descriptors += entry->d_name[0] != '.';
        }
        closedir(all);
        descriptors -= 2; // its own, and the board's
    }
    return {seconds, number_after("/proc/self/smaps_rollup", "Pss:") * 1024, descriptors,
            static_cast<unsigned>(number_after("/proc/self/status", "Threads:"))};
}

} // namespace node_processes
