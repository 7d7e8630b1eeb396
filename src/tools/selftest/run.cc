// SPDX-License-Identifier: BSD-3-Clause
// A session's client, and how it is kept apart from the tool: see selftest.h.
#include "tools/selftest/selftest.h"

#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace selftest {
namespace {

constexpr const test *tests[] = {&tag_eager,       &tag_rendezvous,   &large_message,
                                 &am_eager,        &am_rendezvous,    &stream_bytes,
                                 &puts_and_gets,   &atomics32,        &atomics64,
                                 &flush_and_fence, &sleep_and_wakeup, &death_of_peer};

[[noreturn]] void run_child(int out, const std::function<result()> &run)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(STDERR_FILENO, STDOUT_FILENO); // what the library logs
    result r = run();
    std::string text = r.status + '\n' + r.note;
    for (size_t at = 0; at < text.size();) {
        ssize_t n = write(out, text.data() + at, text.size() - at);
        if (n <= 0) {
            _exit(EXIT_FAILURE);
        }
        at += static_cast<size_t>(n);
    }
    _exit(EXIT_SUCCESS);
}

// False: it took too long.
bool read_to_end(int in, unsigned limit, std::string *text)
{
    char piece[65536];
    for (;;) {
        pollfd end = {in, POLLIN, 0};
        if (poll(&end, 1, static_cast<int>(limit * 1000)) <= 0) {
            return false;
        }
        ssize_t n = read(in, piece, sizeof(piece));
        if (n <= 0) {
            return true;
        }
        text->append(piece, static_cast<size_t>(n));
    }
}

// With the server: what both sides say of it.
std::string converse(const session &about, const test &t, control *link)
{
    link->say(std::string(protocol) + '\n' + t.name + '\n' + about.transport + '\n' +
              std::to_string(about.large) + '\n' + std::to_string(about.limit));
    link->hear(about.limit);
    peer p(about, t.features, t.watches_death, link);
    p.connect();
    std::string note = t.client(p);
    if (!p.expects_death) {
        p.meet();
    }
    return note;
}

} // namespace

std::span<const test *const> all_tests()
{
    return tests;
}

const test *find_test(const std::string &name)
{
    for (const test *t : tests) {
        if (name == t->name) {
            return t;
        }
    }
    return nullptr;
}

result outcome_of(const std::function<std::string()> &body)
{
    try {
        return {"pass", body()};
    } catch (const unsupported &u) {
        return {"unsupported", u.what()};
    } catch (const std::exception &e) {
        return {"fail", e.what()};
    }
}

result apart(unsigned limit, const std::function<result()> &run)
{
    int ends[2];
    if (pipe(ends) != 0) {
        return {"fail", "no pipe"};
    }
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run_child(ends[1], run);
    }
    close(ends[1]);
    std::string text;
    bool in_time = pid > 0 && read_to_end(ends[0], limit, &text);
    close(ends[0]);
    if (pid < 0) {
        return {"fail", "no process"};
    }
    int status = 0;
    if (!in_time) {
        kill(pid, SIGKILL);
    }
    waitpid(pid, &status, 0);
    if (!in_time) {
        return {"fail", "the test hung for " + std::to_string(limit) + " s"};
    }
    size_t end = text.find('\n');
    if (end != std::string::npos) {
        return {text.substr(0, end), text.substr(end + 1)};
    }
    return {"fail", WIFSIGNALED(status)
                        ? std::string("the test's process crashed: ") + strsignal(WTERMSIG(status))
                        : "the test's process ended without a word"};
}

result run_test(const options &opts, const session &about)
{
    return apart(4 * about.limit, [&] {
        return outcome_of([&] {
            control link = connect_to(opts.host, opts.port);
            try {
                return converse(about, *find_test(about.test), &link);
            } catch (const failure &f) {
                link.complain(f.what(), false);
                throw;
            } catch (const unsupported &u) {
                link.complain(u.what(), true);
                throw;
            }
        });
    });
}

std::string greet(const options &opts, unsigned limit)
{
    try {
        control link = connect_to(opts.host, opts.port);
        link.say(std::string(protocol) + "\nhello");
        return link.hear(limit);
    } catch (const std::exception &e) {
        refuse("server " + opts.host + ", port " + opts.port + ": " + e.what());
    }
}

void dismiss(const options &opts)
{
    outcome_of([&]() -> std::string {
        control link = connect_to(opts.host, opts.port);
        link.say(std::string(protocol) + "\nend");
        return link.hear(1);
    });
}

} // namespace selftest
