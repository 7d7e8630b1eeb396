// SPDX-License-Identifier: BSD-3-Clause
// The other side of the sessions: see selftest.h.
#include "tools/selftest/selftest.h"

#include <csignal>
#include <sstream>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace selftest {
namespace {

constexpr int run_is_over = 42; // exit status of a session

void take_part(const session &about, control *link)
{
    const test *t = find_test(about.test);
    if (!t) {
        throw unsupported("the server's ucxlike_selftest has no such test");
    }
    link->say("ready");
    peer p(about, t->features, t->watches_death, link);
    p.connect();
    t->server(p);
    p.meet();
}

// The lines of the first message. False: not of this protocol.
bool parse(const std::string &text, session *about)
{
    std::istringstream in(text);
    std::string line;
    std::getline(in, line);
    if (line != protocol) {
        return false;
    }
    std::getline(in, about->test);
    std::getline(in, about->transport);
    in >> about->large >> about->limit;
    return true;
}

int answer(control *link, unsigned limit)
{
    session about = {{}, {}, 0, limit};
    if (!parse(link->hear(limit), &about)) {
        link->complain(std::string("it speaks another protocol than ") + protocol, false);
        return EXIT_FAILURE;
    }
    if (about.test == "hello" || about.test == "end") {
        link->say(own_versions());
        return about.test == "end" ? run_is_over : EXIT_SUCCESS;
    }
    alarm(4 * about.limit); // a call that hangs
    take_part(about, link);
    return EXIT_SUCCESS;
}

[[noreturn]] void run_session(int fd, unsigned limit)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int status = EXIT_FAILURE;
    control link(fd);
    try {
        status = answer(&link, limit);
    } catch (const unsupported &u) {
        link.complain(u.what(), true);
    } catch (const std::exception &e) {
        link.complain(e.what(), false);
    }
    _exit(status);
}

} // namespace

bool serve(int listener, unsigned limit)
{
    for (;;) {
        int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) {
            return false;
        }
        pid_t pid = fork();
        if (pid == 0) {
            close(listener);
            run_session(fd, limit);
        }
        close(fd);
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) < 0) {
            return false;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == run_is_over) {
            return true;
        }
    }
}

} // namespace selftest
