// SPDX-License-Identifier: BSD-3-Clause
//
// The forms of the reports of UCX_STATS_*, where they go, and when.
#include "fabtests-ext/conformance/common/ucp_stats.h"

#include <csignal>
#include <regex>
#include <set>
#include <sstream>
#include <sys/socket.h>

namespace {

using namespace ucp_test;

class ucp_stats_report : public ucp_stats {};

TEST_P(ucp_stats_report, text_has_what_was_sent)
{
    in_a_process({}, [&] {
        start();
        send(8, 10);
        stop();
    });
    std::string text = contents(path());
    std::regex row("    sent +tag eager +message +10 messages +160 bytes +80 payload\n");
    EXPECT_TRUE(std::regex_search(text, row)) << text;
    EXPECT_NE(std::string::npos, text.find("\n" + transport() + "/")) << text;
}

TEST_P(ucp_stats_report, sums)
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

TEST_P(ucp_stats_report, prometheus_keeps_the_grammar)
{
    in_a_process({{"UCX_STATS_FORMAT", "prometheus"}}, [&] {
        start();
        send(8, 10);
        stop();
    });
    const std::string name = "[a-zA-Z_:][a-zA-Z0-9_:]*";
    const std::string label = "[a-zA-Z_][a-zA-Z0-9_]*=\"(?:[^\"\\\\]|\\\\[\"\\\\n])*\"";
    std::regex comment("# (?:HELP " + name + " .+|TYPE " + name + " (?:counter|gauge))");
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

TEST_P(ucp_stats_report, a_signal_makes_a_report)
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

TEST_P(ucp_stats_report, a_timer_makes_reports)
{
    in_a_process({{"UCX_STATS_TRIGGER", "timer:0.01"}}, [&] {
        start();
        for (int i = 0; i < 2; ++i) {
            EXPECT_TRUE(until([&] { return unlink(path().c_str()) == 0; }));
        }
        stop();
    });
}

TEST_P(ucp_stats_report, a_child_does_not_report_for_its_parent)
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

TEST_P(ucp_stats_report, datagrams)
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

UCP_TEST_OVER(ucp_stats_report, "self", "sm", "ofi_shm", "tcp");

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
UCP_TEST_OVER(ucp_stats_values, "sm", "ofi_shm");

} // namespace
