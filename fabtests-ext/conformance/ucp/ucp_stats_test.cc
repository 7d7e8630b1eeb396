// SPDX-License-Identifier: BSD-3-Clause
//
// The reports of UCX_STATS_*. They concern a whole process, so each case has one of its own.
#include "fabtests-ext/common/ucp_pair.h"
#include "fabtests-ext/common/ucp_region.h"

#include <nlohmann/json.hpp>

#include <csignal>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace ucp_test;
using nlohmann::json;
using variables = std::map<std::string, std::string>;

std::string contents(const std::string &path)
{
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
}

class ucp_stats : public pair {
  protected:
    ucp_stats()
    {
        opts.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA | UCP_FEATURE_AMO64;
        char name[] = "/tmp/ucxlike_stats_XXXXXX";
        EXPECT_NE(nullptr, mkdtemp(name));
        folder_ = name;
    }
    ~ucp_stats() override
    {
        unlink(path().c_str());
        unlink(log().c_str());
        EXPECT_EQ(0, rmdir(folder_.c_str())) << "something else is left in " << folder_;
    }
    // The endpoints are those of the other process.
    void SetUp() override {}
    void TearDown() override {}

    std::string path() const { return folder_ + "/report"; }
    std::string log() const { return folder_ + "/log"; }

    // Runs the body in a process that has these variables. The standard error of that process goes
    // to log().
    void in_a_process(const variables &env, const std::function<void()> &body)
    {
        pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            setenv("UCX_STATS_DEST", ("file:" + path()).c_str(), 1);
            for (const auto &[name, value] : env) {
                setenv(name.c_str(), value.c_str(), 1);
            }
            EXPECT_NE(nullptr, freopen(log().c_str(), "w", stderr));
            body();
            exit(HasFailure() ? 1 : 0);
        }
        int status = -1;
        ASSERT_EQ(child, waitpid(child, &status, 0));
        EXPECT_EQ(0, status) << contents(log());
    }

    // What is reported at the end of a process that ran it between the two endpoints.
    json report_of(const std::function<void()> &body, variables env = {})
    {
        env.emplace("UCX_STATS_FORMAT", "json");
        in_a_process(env, [&] {
            start();
            body();
            stop();
        });
        return json::parse(contents(path()), nullptr, false);
    }

    void send(size_t length, int times)
    {
        std::vector<char> from = pattern(length), to(length);
        for (int i = 0; i < times; ++i) {
            ucp_request_param_t p = {};
            ucs_status_ptr_t received =
                ucp_tag_recv_nbx(b().worker, to.data(), length, 1, UINT64_MAX, &p);
            EXPECT_EQ(UCS_OK, finish(ucp_tag_send_nbx(ab, from.data(), length, 1, &p)));
            EXPECT_EQ(UCS_OK, finish(received));
        }
    }
    void put_and_get(const region &r, size_t length, int times)
    {
        std::vector<char> data = pattern(length);
        ucp_request_param_t p = {};
        for (int i = 0; i < times; ++i) {
            EXPECT_EQ(UCS_OK, finish(ucp_put_nbx(ab, data.data(), length, r.at(), r.rkey, &p)));
            EXPECT_EQ(UCS_OK, finish(ucp_ep_flush_nbx(ab, &p)));
            EXPECT_EQ(UCS_OK, finish(ucp_get_nbx(ab, data.data(), length, r.at(), r.rkey, &p)));
        }
    }

  private:
    std::string folder_;
};

struct sum {
    uint64_t messages = 0, bytes = 0, payload = 0;
};

void add(sum &to, const json &rows, const std::string &protocol, const std::string &way)
{
    for (const json &row : rows) {
        if (row["protocol"] == protocol && (way.empty() || row["way"] == way)) {
            to.messages += row["messages"].get<uint64_t>();
            to.bytes += row["bytes"].get<uint64_t>();
            to.payload += row["payload_bytes"].get<uint64_t>();
        }
    }
}

sum sent(const json &report, const std::string &protocol, const std::string &way = "")
{
    sum all;
    for (const json &i : report["interfaces"]) {
        for (const json &lane : i["lanes"]) {
            add(all, lane["sent"], protocol, way);
        }
    }
    return all;
}

sum received(const json &report, const std::string &protocol)
{
    sum all;
    for (const json &i : report["interfaces"]) {
        add(all, i["received"], protocol, "");
    }
    return all;
}

TEST_P(ucp_stats, eager_tags)
{
    json report = report_of([&] {
        send(8, 10);
        send(100, 5);
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    sum s = sent(report, "tag eager"), r = received(report, "tag eager");
    EXPECT_EQ(15u, s.messages);
    EXPECT_EQ(10u * 8 + 5 * 100, s.payload);
    EXPECT_EQ(s.payload + 15 * sizeof(ucp_tag_t), s.bytes);
    EXPECT_EQ(15u, r.messages);
    EXPECT_EQ(s.bytes, r.bytes);
    EXPECT_EQ(s.payload, r.payload);
}

TEST_P(ucp_stats, lanes_name_their_transport_and_their_endpoint)
{
    json report = report_of([&] { send(8, 1); });
    ASSERT_TRUE(report.is_object()) << contents(path());
    size_t with_messages = 0;
    for (const json &i : report["interfaces"]) {
        for (const json &lane : i["lanes"]) {
            sum s;
            add(s, lane["sent"], "tag eager", "message");
            if (s.messages == 0) {
                continue;
            }
            ++with_messages;
            EXPECT_EQ(opts.tls, i["transport"].get<std::string>());
            EXPECT_NE("", lane["endpoint"]);
            EXPECT_NE("", lane["peer"]);
            EXPECT_NE(std::string::npos, lane["roles"].get<std::string>().find("am"));
            EXPECT_EQ(0, lane["reconnects"]);
            EXPECT_EQ(0, lane["errors"]);
        }
    }
    EXPECT_EQ(1u, with_messages);
}

TEST_P(ucp_stats, rendezvous_that_reads)
{
    constexpr size_t length = 1 << 20;
    json report = report_of([&] { send(length, 3); });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(3u, sent(report, "rndv rts").messages);
    EXPECT_EQ(3 * length, sent(report, "get", "native").payload);
    EXPECT_EQ(0u, sent(report, "rndv data").messages);
    EXPECT_EQ(3u, received(report, "rndv ats").messages);
}

TEST_P(ucp_stats, rendezvous_in_messages)
{
    constexpr size_t length = 1 << 20;
    opts.config = {{"RNDV_SCHEME", "am"}};
    json report = report_of([&] { send(length, 3); });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(3u, sent(report, "rndv rts").messages);
    EXPECT_EQ(3u, sent(report, "rndv rtr").messages);
    EXPECT_EQ(3 * length, sent(report, "rndv data", "emulated").payload);
    EXPECT_EQ(3 * length, received(report, "rndv data").payload);
    EXPECT_EQ(0u, sent(report, "get").messages);
}

TEST_P(ucp_stats, active_messages)
{
    static int arrived;
    arrived = 0;
    json report = report_of([&] {
        ucp_am_handler_param_t handler = {};
        handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB;
        handler.id = 3;
        handler.cb = [](void *, const void *, size_t, void *, size_t,
                        const ucp_am_recv_param_t *) -> ucs_status_t {
            ++arrived;
            return UCS_OK;
        };
        ASSERT_EQ(UCS_OK, ucp_worker_set_am_recv_handler(b().worker, &handler));
        std::vector<char> data = pattern(64);
        ucp_request_param_t p = {};
        for (int i = 0; i < 7; ++i) {
            EXPECT_EQ(UCS_OK, finish(ucp_am_send_nbx(ab, 3, "head", 4, data.data(), 64, &p)));
        }
        EXPECT_TRUE(until([&] { return arrived == 7; }));
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(7u, sent(report, "am single").messages);
    EXPECT_EQ(7u * (4 + 64), sent(report, "am single").payload);
    EXPECT_EQ(7u * (4 + 64), received(report, "am single").payload);
}

TEST_P(ucp_stats, puts_and_gets)
{
    constexpr size_t small = 64, large = 100000;
    json report = report_of([&] {
        region r(b(), ab, nullptr, large);
        put_and_get(r, small, 4);
        put_and_get(r, large, 2);
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    if (opts.tls == "tcp") {
        EXPECT_EQ(4u, sent(report, "put", "emulated").messages); // cheaper than the transport's own
        EXPECT_EQ(4 * small, sent(report, "put", "emulated").payload);
        EXPECT_EQ(2 * large, sent(report, "put", "native").payload);
        EXPECT_EQ(4 * small + 2 * large,
                  sent(report, "get", "native").payload + sent(report, "get reply").payload);
    } else {
        const char *way = is_self() ? "native" : "memory";
        EXPECT_EQ(6u, sent(report, "put", way).messages);
        EXPECT_EQ(4 * small + 2 * large, sent(report, "put", way).payload);
        EXPECT_EQ(6u, sent(report, "get", way).messages);
        EXPECT_EQ(4 * small + 2 * large, sent(report, "get", way).payload);
        EXPECT_EQ(6u, sent(report, "put").messages);
        EXPECT_EQ(6u, sent(report, "get").messages);
    }
}

TEST_P(ucp_stats, puts_of_the_transport)
{
    constexpr size_t length = 100000;
    std::vector<char> target(length);
    json report = report_of([&] {
        region r(b(), ab, target.data(), length); // which no other process can map
        put_and_get(r, length, 3);
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(3 * length, sent(report, "put", "native").payload);
    EXPECT_EQ(3 * length, sent(report, "put").payload);
    EXPECT_EQ(3 * length, sent(report, "get", "native").payload);
}

TEST_P(ucp_stats, atomics)
{
    json report = report_of([&] {
        region r(b(), ab, nullptr, sizeof(uint64_t));
        uint64_t one = 1;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
        p.datatype = ucp_dt_make_contig(sizeof(one));
        for (int i = 0; i < 5; ++i) {
            EXPECT_EQ(UCS_OK, finish(ucp_atomic_op_nbx(ab, UCP_ATOMIC_OP_ADD, &one, 1, r.at(),
                                                       r.rkey, &p)));
        }
        ucp_request_param_t flush = {};
        EXPECT_EQ(UCS_OK, finish(ucp_ep_flush_nbx(ab, &flush)));
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(5u, sent(report, "atomic", opts.tls == "shm" ? "memory" : "emulated").messages);
    EXPECT_EQ(5u, sent(report, "atomic").messages);
}

TEST_P(ucp_stats, text_has_what_was_sent)
{
    in_a_process({}, [&] {
        start();
        send(8, 10);
        stop();
    });
    std::string text = contents(path());
    std::regex row("    sent +tag eager +message +10 messages +160 bytes +80 payload\n");
    EXPECT_TRUE(std::regex_search(text, row)) << text;
    EXPECT_NE(std::string::npos, text.find(opts.tls + "/")) << text;
}

TEST_P(ucp_stats, sums)
{
    for (const char *format : {"agg", "summary"}) {
        in_a_process({{"UCX_STATS_FORMAT", format}, {"UCX_STATS_FILTER", "tag*"}}, [&] {
            start();
            send(8, 10);
            stop();
        });
        std::string text = contents(path());
        EXPECT_NE(std::string::npos, text.find("lanes, sum of ")) << text;
        EXPECT_NE(std::string::npos, text.find(" tag eager ")) << text;
        EXPECT_EQ(std::string::npos, text.find(" wireup ")) << text;
        bool by_interface = text.find(", interface ") != std::string::npos;
        EXPECT_EQ(strcmp(format, "agg") == 0, by_interface) << text;
    }
}

TEST_P(ucp_stats, prometheus_keeps_the_grammar)
{
    in_a_process({{"UCX_STATS_FORMAT", "prometheus"}}, [&] {
        start();
        send(8, 10);
        stop();
    });
    const std::string name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
    const std::string label = "[a-zA-Z_][a-zA-Z0-9_]*=\"(?:[^\"\\\\]|\\\\[\"\\\\n])*\"";
    std::regex comment("# (?:HELP " + name + " .+|TYPE " + name + " counter)");
    std::regex sample("(" + name + "\\{" + label + "(?:," + label + ")*\\}) ([0-9]+)");
    std::istringstream lines(contents(path()));
    std::set<std::string> seen;
    uint64_t messages = 0;
    for (std::string line; std::getline(lines, line);) {
        std::smatch parts;
        if (std::regex_match(line, comment)) {
            continue;
        }
        ASSERT_TRUE(std::regex_match(line, parts, sample)) << line;
        EXPECT_TRUE(seen.insert(parts[1]).second) << "twice: " << line;
        if (line.starts_with("ucxlike_messages_sent_total") &&
            line.find("protocol=\"tag eager\"") != std::string::npos) {
            messages += std::stoull(parts[2]);
        }
    }
    EXPECT_EQ(10u, messages);
}

int handled;

TEST_P(ucp_stats, a_signal_makes_a_report)
{
    in_a_process({{"UCX_STATS_TRIGGER", "signal:USR1"}, {"UCX_STATS_FORMAT", "json"}}, [&] {
        handled = 0;
        signal(SIGUSR1, [](int) { ++handled; });
        start();
        send(8, 3);
        EXPECT_NE(0, access(path().c_str(), F_OK));
        raise(SIGUSR1);
        EXPECT_EQ(1, handled); // the program's own handler is called, too
        EXPECT_TRUE(until([&] { return access(path().c_str(), F_OK) == 0; }));
        json report = json::parse(contents(path()), nullptr, false);
        ASSERT_TRUE(report.is_object());
        EXPECT_EQ(3u, sent(report, "tag eager").messages);
        unlink(path().c_str());
        stop();
    });
    EXPECT_NE(0, access(path().c_str(), F_OK)) << "a report at the end, too";
}

TEST_P(ucp_stats, a_timer_makes_reports)
{
    in_a_process({{"UCX_STATS_TRIGGER", "timer:0.01"}}, [&] {
        start();
        for (int i = 0; i < 2; ++i) {
            EXPECT_TRUE(until([&] { return unlink(path().c_str()) == 0; }));
        }
        stop();
    });
}

TEST_P(ucp_stats, a_child_does_not_report_for_its_parent)
{
    json report = report_of([&] {
        send(8, 1);
        pid_t child = fork();
        if (child == 0) {
            exit(0);
        }
        EXPECT_EQ(child, waitpid(child, nullptr, 0));
        EXPECT_NE(0, access(path().c_str(), F_OK));
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    EXPECT_EQ(1u, sent(report, "tag eager").messages);
}

TEST_P(ucp_stats, datagrams)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    ASSERT_EQ(0, bind(fd, reinterpret_cast<sockaddr *>(&address), size));
    ASSERT_EQ(0, getsockname(fd, reinterpret_cast<sockaddr *>(&address), &size));
    std::string dest = "udp:127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    in_a_process({{"UCX_STATS_DEST", dest}}, [&] {
        start();
        send(8, 10);
        stop();
    });
    std::string text;
    char datagram[2000];
    for (ssize_t n; (n = recv(fd, datagram, sizeof(datagram), MSG_DONTWAIT)) > 0;) {
        EXPECT_EQ('\n', datagram[n - 1]);
        text.append(datagram, static_cast<size_t>(n));
    }
    close(fd);
    EXPECT_EQ(0u, text.find("ucxlike statistics of process ")) << text;
    EXPECT_NE(std::string::npos, text.find(" 10 messages")) << text;
}

UCP_TEST_OVER(ucp_stats, "self", "shm", "tcp");

// Over one transport: the values themselves.
class ucp_stats_values : public ucp_stats {};

TEST_P(ucp_stats_values, what_is_not_valid_is_an_error_that_names_the_variable)
{
    const std::pair<const char *, const char *> bad[] = {
        {"UCX_STATS_DEST", "nowhere"},      {"UCX_STATS_DEST", "file:"},
        {"UCX_STATS_DEST", "udp:"},         {"UCX_STATS_DEST", "udp:host:port"},
        {"UCX_STATS_TRIGGER", "sometimes"}, {"UCX_STATS_TRIGGER", "signal:KILL"},
        {"UCX_STATS_TRIGGER", "signal:"},   {"UCX_STATS_TRIGGER", "timer:0"},
        {"UCX_STATS_TRIGGER", "timer:x"},   {"UCX_STATS_FORMAT", "xml"}};
    for (const auto &[name, value] : bad) {
        in_a_process({{name, value}}, [&] {
            ucp_params_t params = {};
            params.field_mask = UCP_PARAM_FIELD_FEATURES;
            params.features = UCP_FEATURE_TAG;
            ucp_context_h context = nullptr;
            EXPECT_EQ(UCS_ERR_INVALID_PARAM, ucp_init(&params, nullptr, &context));
        });
        std::string wanted = std::string(name) + "='" + value + "' is not valid";
        EXPECT_NE(std::string::npos, contents(log()).find(wanted)) << contents(log());
    }
}

TEST_P(ucp_stats_values, a_file_that_cannot_be_written_is_named)
{
    in_a_process({{"UCX_STATS_DEST", "file:/nonexistent/report"}}, [&] {
        start();
        stop();
    });
    EXPECT_NE(std::string::npos, contents(log()).find("UCX_STATS_DEST: /nonexistent/report"))
        << contents(log());
}

TEST_P(ucp_stats_values, standard_error)
{
    in_a_process({{"UCX_STATS_DEST", "stderr"}}, [&] {
        start();
        stop();
    });
    EXPECT_NE(std::string::npos, contents(log()).find("ucxlike statistics")) << contents(log());
}

TEST_P(ucp_stats_values, the_process_in_a_path)
{
    static std::string reported;
    in_a_process({{"UCX_STATS_DEST", "file:" + path() + ".%p"}}, [&] {
        reported = path() + "." + std::to_string(getpid());
        // Registered before the library is used, so it runs after the report.
        atexit([] { _exit(unlink(reported.c_str()) == 0 ? 0 : 2); });
        start();
        stop();
    });
}

TEST_P(ucp_stats_values, nothing_is_counted_unless_asked)
{
    in_a_process({{"UCX_STATS_DEST", ""}, {"UCX_STATS_TRIGGER", "signal:USR1"}}, [&] {
        start();
        send(8, 1);
        stop();
        struct sigaction now;
        EXPECT_EQ(0, sigaction(SIGUSR1, nullptr, &now));
        EXPECT_EQ(SIG_DFL, now.sa_handler);
    });
    EXPECT_EQ("", contents(path()));
}

TEST_P(ucp_stats_values, retries_are_counted)
{
    json report = report_of([&] {
        constexpr int count = 20000;
        uint64_t data = 0;
        std::vector<ucs_status_ptr_t> requests;
        ucp_request_param_t p = {};
        for (int i = 0; i < count; ++i) {
            requests.push_back(ucp_tag_send_nbx(ab, &data, sizeof(data), 1, &p));
        }
        for (int i = 0; i < count; ++i) {
            EXPECT_EQ(UCS_OK,
                      finish(ucp_tag_recv_nbx(b().worker, &data, sizeof(data), 1, UINT64_MAX, &p)));
        }
        for (ucs_status_ptr_t r : requests) {
            EXPECT_EQ(UCS_OK, finish(r));
        }
    });
    ASSERT_TRUE(report.is_object()) << contents(path());
    uint64_t retries = 0;
    for (const json &i : report["interfaces"]) {
        for (const json &lane : i["lanes"]) {
            retries += lane["retries"].get<uint64_t>();
        }
    }
    EXPECT_GT(retries, 0u);
    EXPECT_EQ(20000u, sent(report, "tag eager").messages);
    EXPECT_EQ(20000u, received(report, "tag eager").messages);
}

UCP_TEST_OVER(ucp_stats_values, "shm");

} // namespace
