// SPDX-License-Identifier: BSD-3-Clause
//
// Connections that are lost and made again, as UCX_STATS_DEST counts them.
#include "fabtests-ext/conformance/common/ucp_stats.h"

#include <arpa/inet.h>
#include <csignal>
#include <dirent.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>

namespace {

using namespace ucp_test;

// Cuts all TCP connections of this process.
int cut_sockets()
{
    int cut = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dirent *entry = dir ? readdir(dir) : nullptr) {
        int fd = atoi(entry->d_name), type = 0;
        socklen_t size = sizeof(type);
        sockaddr_in name = {};
        socklen_t length = sizeof(name);
        if (entry->d_name[0] != '.' && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
            type == SOCK_STREAM &&
            getpeername(fd, reinterpret_cast<sockaddr *>(&name), &length) == 0 &&
            name.sin_family == AF_INET) {
            cut += shutdown(fd, SHUT_RDWR) == 0;
        }
    }
    closedir(dir);
    return cut;
}

class ucp_reconnect : public ucp_stats {
  protected:
    // Reconnects of the lanes on which so many tagged messages were sent; -1: there is none.
    static int reconnects(const json &report, unsigned messages)
    {
        int found = -1;
        for (const json &i : report["interfaces"]) {
            for (const json &lane : i["lanes"]) {
                sum s;
                add(s, lane["sent"], "tag eager", "message");
                add(s, lane["sent"], "tag first", "message");
                if (s.messages == messages) {
                    found = std::max(found, 0) + lane["reconnects"].get<int>();
                }
            }
        }
        return found;
    }

    // Replaces the endpoint of start(), which has no error handler.
    void open_again(errors *seen) { EXPECT_EQ(UCS_OK, create_ep(a(), b().address(), &ab, seen)); }
    void close(bool force)
    {
        EXPECT_EQ(UCS_OK, finish(close_nb(ab, force)));
        ab = nullptr;
    }
    void close_first_ones()
    {
        close(false);
        EXPECT_EQ(UCS_OK, finish(close_nb(ba)));
        ba = nullptr;
    }
};

TEST_P(ucp_reconnect, a_lane_in_the_place_of_one_whose_socket_was_cut)
{
    json report = report_of([&] {
        close_first_ones();
        errors seen;
        open_again(&seen);
        send(8, 3);
        EXPECT_GT(cut_sockets(), 0);
        ASSERT_TRUE(until([&] { return seen.count == 1; }));
        close(true);
        open_again(&seen);
        send(8, 5);
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(0, reconnects(report, 3)) << report.dump(1);
    EXPECT_EQ(1, reconnects(report, 5)) << report.dump(1);
}

TEST_P(ucp_reconnect, a_lane_after_one_that_was_closed_is_none)
{
    json report = report_of([&] {
        close_first_ones();
        open_again(nullptr);
        send(8, 3);
        close(false);
        open_again(nullptr);
        send(8, 5);
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(0, reconnects(report, 3)) << report.dump(1);
    EXPECT_EQ(0, reconnects(report, 5)) << report.dump(1);
}

// A process that listens, one life of it after the other at the same port.
class server {
  public:
    explicit server(const options &opts)
    {
        EXPECT_EQ(0, socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds_));
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::close(fds_[0]);
            serve(opts);
        }
        ::close(fds_[1]);
    }
    ~server()
    {
        kill();
        ::close(fds_[0]);
    }
    server(const server &) = delete;
    server &operator=(const server &) = delete;

    // Opens what it has, at that port or at any.
    sockaddr_in listen(uint16_t port)
    {
        sockaddr_in at = {};
        EXPECT_EQ(ssize_t(sizeof(port)), write(fds_[0], &port, sizeof(port)));
        EXPECT_EQ(ssize_t(sizeof(at)), read(fds_[0], &at, sizeof(at)));
        return at;
    }

    void kill()
    {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            EXPECT_EQ(pid_, waitpid(pid_, nullptr, 0));
            pid_ = -1;
        }
    }

  private:
    static void accept(ucp_conn_request_h request, void *arg)
    {
        ucp_ep_params_t params = {};
        params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST;
        params.conn_request = request;
        ucp_ep_h ep;
        EXPECT_EQ(UCS_OK, ucp_ep_create(static_cast<entity *>(arg)->worker, &params, &ep));
    }

    [[noreturn]] void serve(const options &opts)
    {
        sockaddr_in at = {};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (read(fds_[1], &at.sin_port, sizeof(at.sin_port)) != sizeof(at.sin_port)) {
            _exit(0);
        }
        unsetenv("UCX_STATS_DEST");
        entity e(opts);
        ucp_listener_params_t params = {};
        params.field_mask =
            UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
        params.sockaddr = {reinterpret_cast<sockaddr *>(&at), sizeof(at)};
        params.conn_handler = {accept, &e};
        ucp_listener_h listener;
        ucp_listener_attr_t attr = {};
        attr.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
        if (ucp_listener_create(e.worker, &params, &listener) != UCS_OK ||
            ucp_listener_query(listener, &attr) != UCS_OK ||
            write(fds_[1], &attr.sockaddr, sizeof(at)) != sizeof(at)) {
            _exit(1);
        }
        for (;;) {
            e.progress();
        }
    }

    int fds_[2];
    pid_t pid_;
};

void connect_and_send(entity &e, const sockaddr_in &to, unsigned messages, errors *seen,
                      ucp_ep_h *ep)
{
    ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                        UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr = {reinterpret_cast<const sockaddr *>(&to), sizeof(to)};
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params.err_handler = {errors::handler, seen};
    ASSERT_EQ(UCS_OK, ucp_ep_create(e.worker, &params, ep));
    uint64_t word = 1;
    for (unsigned i = 0; i < messages; ++i) {
        EXPECT_EQ(UCS_OK, wait({&e}, send_nb(*ep, &word, sizeof(word), 1)));
    }
    EXPECT_EQ(UCS_OK, wait({&e}, flush_nb(*ep)));
}

TEST_P(ucp_reconnect, a_lane_to_a_server_that_was_killed_and_started_again)
{
    in_a_process({{"UCX_STATS_FORMAT", "json"}}, [&] {
        server first(opts), second(opts); // before this process uses anything
        sockaddr_in at = first.listen(0);
        entity e(opts);
        errors seen;
        ucp_ep_h ep;
        connect_and_send(e, at, 3, &seen, &ep);
        first.kill();
        EXPECT_TRUE(run_until({&e}, [&] { return seen.count == 1; }));
        EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
        second.listen(at.sin_port);
        connect_and_send(e, at, 5, &seen, &ep);
        EXPECT_EQ(UCS_OK, wait({&e}, close_nb(ep, true)));
        EXPECT_EQ(1, seen.count);
    });
    json report = json::parse(contents(path()), nullptr, false);
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(0, reconnects(report, 3)) << report.dump(1);
    EXPECT_EQ(1, reconnects(report, 5)) << report.dump(1);
}

UCP_TEST_OVER(ucp_reconnect, "tcp");

} // namespace
