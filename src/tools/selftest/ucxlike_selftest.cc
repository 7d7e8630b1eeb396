// SPDX-License-Identifier: BSD-3-Clause
// ucxlike_selftest: its command line, and the run over the transports. See selftest.h.
#include "tools/selftest/selftest.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <getopt.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace selftest;

constexpr size_t usual_large = 64 << 20;

constexpr const char *usage_text =
    "usage: ucxlike_selftest [options]            both processes on this host\n"
    "       ucxlike_selftest --server [-p PORT]   waits for a client\n"
    "       ucxlike_selftest [options] HOST       client of the server at HOST\n"
    "  -t, --transport NAME  a transport or a provider of libfabric, and nothing else; may be\n"
    "                        repeated (default: each transport of this host in turn)\n"
    "  -d, --device NAME     only this device\n"
    "  -T, --test NAME       only this test\n"
    "  -l, --large BYTES     of the large message (default: one more than the core's maximum,\n"
    "                        at most 67108864)\n"
    "  -w, --limit SECONDS   that a step of a test may take (default 30)\n"
    "  -p, --port PORT       of the server's control connection (default 13338)\n"
    "      --server          be the server\n"
    "      --list            print the names of the tests\n"
    "      --json            print JSON\n"
    "  -h, --help            this text\n";

enum long_only { server = 256, list, as_json };

constexpr option long_options[] = {{"transport", required_argument, nullptr, 't'},
                                   {"device", required_argument, nullptr, 'd'},
                                   {"test", required_argument, nullptr, 'T'},
                                   {"large", required_argument, nullptr, 'l'},
                                   {"limit", required_argument, nullptr, 'w'},
                                   {"port", required_argument, nullptr, 'p'},
                                   {"server", no_argument, nullptr, server},
                                   {"list", no_argument, nullptr, list},
                                   {"json", no_argument, nullptr, as_json},
                                   {"help", no_argument, nullptr, 'h'},
                                   {nullptr, 0, nullptr, 0}};

[[noreturn]] void refuse_all()
{
    fputs(usage_text, stderr);
    exit(EXIT_FAILURE);
}

size_t positive(const char *name, const char *text, size_t most)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (!*text || *text == '-' || *end || value == 0 || value > most) {
        refuse(std::string(name) + ": '" + text + "' is not a number from 1 to " +
               std::to_string(most));
    }
    return value;
}

void parse_option(int c, options *opts)
{
    switch (c) {
    case 't':
        opts->names.emplace_back(optarg);
        return;
    case 'd':
        opts->device = optarg;
        return;
    case 'T':
        opts->only_test = optarg;
        return;
    case 'l':
        opts->large = positive("-l", optarg, SIZE_MAX / 2);
        return;
    case 'w':
        opts->limit = static_cast<unsigned>(positive("-w", optarg, 100000));
        return;
    case 'p':
        opts->port = std::to_string(positive("-p", optarg, 65535));
        return;
    case server:
        opts->server = true;
        return;
    case list:
        opts->list = true;
        return;
    case as_json:
        opts->as_json = true;
        return;
    case 'h':
        fputs(usage_text, stdout);
        exit(EXIT_SUCCESS);
    default:
        refuse_all();
    }
}

options parse_options(int argc, char **argv)
{
    options opts;
    for (int c; (c = getopt_long(argc, argv, "t:d:T:l:w:p:h", long_options, nullptr)) != -1;) {
        parse_option(c, &opts);
    }
    if (optind < argc) {
        opts.host = argv[optind++];
    }
    if (optind < argc || (opts.server && !opts.host.empty())) {
        refuse_all();
    }
    if (!opts.only_test.empty() && !find_test(opts.only_test)) {
        refuse("-T: no test is named '" + opts.only_test + "'; --list prints the names");
    }
    return opts;
}

// Cores with shared memory of their own use the fabric, also between two processes of a host.
void force_off_node()
{
    setenv("FI_EFA_ENABLE_SHM_TRANSFER", "0", 0);
    setenv("FI_OPX_SHM_ENABLE", "0", 0);
    setenv("PSM3_DEVICES", "self,nic", 0);
}

// Of this host: the options lead to it.
pid_t start_server(options *opts)
{
    opts->host = "127.0.0.1";
    opts->port = "0";
    int listener = listen_at(opts->host.c_str(), &opts->port);
    pid_t pid = fork();
    if (pid < 0) {
        refuse("no process for the server");
    }
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        _exit(serve(listener, opts->limit) ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(listener);
    return pid;
}

bool has_provider(const json &transport, const std::string &name)
{
    const json &devices = transport.at("devices");
    return std::any_of(devices.begin(), devices.end(),
                       [&](const json &d) { return d.value("provider", "") == name; });
}

[[noreturn]] void refuse_name(const json &report, const std::string &name)
{
    std::string text = "'" + name + "' is no transport and no provider that is used here";
    for (const json &u : report.at("not_used")) {
        if (u.at("kind") == "provider" && u.at("name") == name) {
            text += " (" + u.at("why").get<std::string>() + ")";
            break;
        }
    }
    text += "; there are:";
    for (const json &t : report.at("transports")) {
        text += " " + t.at("transport").get<std::string>();
    }
    refuse(text + "; ucxlike_info --why-not tells more");
}

// Those that the names mean, in that order.
json chosen(const options &opts, const json &report)
{
    const json &all = report.at("transports");
    if (opts.names.empty()) {
        return all;
    }
    json result = json::array();
    for (const std::string &name : opts.names) {
        size_t before = result.size();
        for (const json &t : all) {
            if (t.at("transport") == name) {
                result.push_back(t);
            }
        }
        for (const json &t : all) {
            if (before == result.size() && has_provider(t, name)) {
                result.push_back(t);
            }
        }
        if (before == result.size()) {
            refuse_name(report, name);
        }
    }
    return result;
}

// More than each device takes at once, where that is not too much.
size_t large_for(const options &opts, const json &transport, size_t *maximum)
{
    *maximum = 0;
    for (const json &d : transport.at("devices")) {
        *maximum = std::max(*maximum, d.value("max_message", size_t(0)));
    }
    return opts.large ? opts.large : *maximum < usual_large ? *maximum + 1 : usual_large;
}

void count(json *report, const std::string &status)
{
    const char *name = status == "pass" ? "passed" : status == "fail" ? "failed" : "unsupported";
    (*report)[name] = (*report)[name].get<unsigned>() + 1;
}

void run_transport(const options &opts, json *transport, json *report)
{
    size_t maximum;
    session about = {transport->at("transport"), "", 0, opts.limit};
    about.large = large_for(opts, *transport, &maximum);
    about.large = maximum == 0 && !opts.large ? usual_large : about.large;
    json &rows = (*transport)["tests"] = json::array();
    for (const test *t : all_tests()) {
        if (!opts.only_test.empty() && opts.only_test != t->name) {
            continue;
        }
        about.test = t->name;
        result r = run_test(opts, about);
        if (t == &large_message && r.status == "pass" && about.large <= maximum) {
            r.note += ", not above the core's maximum";
        }
        json row = {{"test", t->name}, {"status", r.status}, {"note", r.note}};
        count(report, r.status);
        if (!opts.as_json) {
            print_result(row);
        }
        rows.push_back(row);
    }
}

// What was set on purpose: reports need it.
json settings_of_environment()
{
    json list = json::array();
    for (char **e = environ; *e; ++e) {
        for (const char *prefix : {"UCX_", "FI_", "PSM3_"}) {
            if (strncmp(*e, prefix, strlen(prefix)) == 0) {
                list.push_back(*e);
            }
        }
    }
    return list;
}

bool run(const options &opts)
{
    std::string other = greet(opts, opts.limit);
    json report = discover(opts);
    json transports = chosen(opts, report);
    report["peer"] = other;
    report["settings"] = settings_of_environment();
    report["passed"] = report["failed"] = report["unsupported"] = 0;
    if (!opts.as_json) {
        print_head(report);
    }
    for (json &t : transports) {
        if (!opts.as_json) {
            print_transport(t);
        }
        run_transport(opts, &t, &report);
    }
    report["transports"] = transports;
    if (opts.as_json) {
        printf("%s\n", report.dump(2, ' ', false, json::error_handler_t::replace).c_str());
    } else {
        print_end(report);
    }
    return report["failed"] == 0 && report["passed"] > 0;
}

bool be_server(options *opts)
{
    int listener = listen_at(nullptr, &opts->port);
    printf("ucxlike_selftest: waiting for a client at port %s\n", opts->port.c_str());
    fflush(stdout);
    return serve(listener, opts->limit);
}

} // namespace

int main(int argc, char **argv)
{
    options opts = parse_options(argc, argv);
    if (opts.list) {
        for (const test *t : all_tests()) {
            printf("%s\n", t->name);
        }
        return EXIT_SUCCESS;
    }
    signal(SIGPIPE, SIG_IGN);
    force_off_node();
    if (!opts.device.empty()) {
        setenv("UCX_NET_DEVICES", opts.device.c_str(), 1);
    }
    if (opts.server) {
        return be_server(&opts) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    pid_t own_server = opts.host.empty() ? start_server(&opts) : 0;
    bool ok = run(opts);
    dismiss(opts);
    if (own_server) {
        waitpid(own_server, nullptr, 0);
    }
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
