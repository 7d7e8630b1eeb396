// SPDX-License-Identifier: BSD-3-Clause
// The command line: see info.h. The letters are ucx_info's.
#include "tools/info.h"

#include <cstdlib>
#include <cstring>
#include <getopt.h>

namespace tools {
namespace {

constexpr const char *usage_text =
    "usage: ucxlike_info [options]\n"
    "       ucxlike_info doctor [--pid PID] [--json]\n"
    "  -v, --version        version of the library, of the API it implements, of libfabric\n"
    "  -d, --devices        memory domains, transports and devices, with their capabilities\n"
    "  -t, --transport NAME with -d: only the transport NAME\n"
    "      --why-not        providers and devices that are not used, and why\n"
    "  -c, --config         configuration (UCX_ variables and their values)\n"
    "  -f, --full           with -c: meaning and source of every variable\n"
    "  -C, --comment        with -c: values that are the default are comments\n"
    "  -F, --filter TEXT    with -c: only variables whose name has TEXT\n"
    "  -a, --all            with -c: hidden variables, too; there are none\n"
    "  -b, --build          how the library was built\n"
    "  -y, --types          sizes of the types of the interface\n"
    "  -s, --system         the machine\n"
    "  -T, --topology       its devices and their distances\n"
    "  -M, --memcpy         how fast memory is copied\n"
    "  -p, --context        the context: what a program gets from ucp_init\n"
    "  -w, --worker         a worker of that context\n"
    "  -e, --endpoint       an endpoint of that worker to itself: which transport carries what\n"
    "  -m, --memory SIZE    memory of that size from that context\n"
    "  -u, --features LIST  letters of the features for -p, -w, -e, -m: a atomics, r put and get,\n"
    "                       t tags, m active messages, s streams, w wake-up; e: with error\n"
    "                       handling (default tm)\n"
    "  -n, --num-eps N      how many endpoints the context is to expect\n"
    "  -N, --num-ppn N      ... on this host\n"
    "  -D, --device-types T what the context uses: all, shm, net or self\n"
    "  -P, --placement P    where the peer of -e is: self, intra (another process), inter (the\n"
    "                       same, by the network)\n"
    "  -A, --address IP     -e in client/server mode: to a listener at this address of this host\n"
    "  -6, --ipv6           the address of -A is of IPv6\n"
    "      --json           print JSON\n"
    "  -h, --help           this text\n";

enum long_only { why_not = 256, as_json, pid };

constexpr option long_options[] = {{"version", no_argument, nullptr, 'v'},
                                   {"devices", no_argument, nullptr, 'd'},
                                   {"transport", required_argument, nullptr, 't'},
                                   {"why-not", no_argument, nullptr, why_not},
                                   {"config", no_argument, nullptr, 'c'},
                                   {"full", no_argument, nullptr, 'f'},
                                   {"comment", no_argument, nullptr, 'C'},
                                   {"all", no_argument, nullptr, 'a'},
                                   {"build", no_argument, nullptr, 'b'},
                                   {"types", no_argument, nullptr, 'y'},
                                   {"system", no_argument, nullptr, 's'},
                                   {"topology", no_argument, nullptr, 'T'},
                                   {"memcpy", no_argument, nullptr, 'M'},
                                   {"context", no_argument, nullptr, 'p'},
                                   {"worker", no_argument, nullptr, 'w'},
                                   {"endpoint", no_argument, nullptr, 'e'},
                                   {"memory", required_argument, nullptr, 'm'},
                                   {"features", required_argument, nullptr, 'u'},
                                   {"num-eps", required_argument, nullptr, 'n'},
                                   {"num-ppn", required_argument, nullptr, 'N'},
                                   {"device-types", required_argument, nullptr, 'D'},
                                   {"placement", required_argument, nullptr, 'P'},
                                   {"filter", required_argument, nullptr, 'F'},
                                   {"address", required_argument, nullptr, 'A'},
                                   {"ipv6", no_argument, nullptr, '6'},
                                   {"json", no_argument, nullptr, as_json},
                                   {"pid", required_argument, nullptr, pid},
                                   {"help", no_argument, nullptr, 'h'},
                                   {nullptr, 0, nullptr, 0}};

[[noreturn]] void refuse(const std::string &text)
{
    fprintf(stderr, "ucxlike_info: %s\n", text.c_str());
    exit(EXIT_FAILURE);
}

[[noreturn]] void refuse_all()
{
    fputs(usage_text, stderr);
    exit(EXIT_FAILURE);
}

void parse_features(const char *letters, options *opts)
{
    constexpr struct {
        char letter;
        uint64_t feature;
    } rows[] = {{'a', UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64},
                {'r', UCP_FEATURE_RMA},
                {'t', UCP_FEATURE_TAG},
                {'m', UCP_FEATURE_AM},
                {'s', UCP_FEATURE_STREAM},
                {'w', UCP_FEATURE_WAKEUP},
                {'e', 0}};
    for (const char *p = letters; *p; ++p) {
        bool known = false;
        for (auto &row : rows) {
            known = known || row.letter == *p;
            opts->features |= row.letter == *p ? row.feature : 0;
        }
        opts->error_handling = opts->error_handling || *p == 'e';
        if (!known) {
            refuse(std::string("-u: '") + *p + "' is not one of a r t m s w e");
        }
    }
}

size_t number(const char *name, const char *text)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (!*text || *text == '-' || *end || value == 0) {
        refuse(std::string(name) + ": '" + text + "' is not a positive number");
    }
    return value;
}

std::string one_of(const char *name, const char *text, const char *choices)
{
    if (!strchr(text, ' ') && strstr((std::string(" ") + choices + " ").c_str(),
                                     (std::string(" ") + text + " ").c_str())) {
        return text;
    }
    refuse(std::string(name) + ": '" + text + "' is not one of " + choices);
}

// The options that only say what to print.
bool *switch_of(int c, options *opts)
{
    switch (c) {
    case 'v':
        return &opts->version;
    case 'd':
        return &opts->devices;
    case why_not:
        return &opts->why_not;
    case 'c':
        return &opts->config;
    case 'f':
        return &opts->docs;
    case 'C':
        return &opts->comment_defaults;
    case 'b':
        return &opts->build;
    case 'y':
        return &opts->types;
    case 's':
        return &opts->system;
    case 'T':
        return &opts->topology;
    case 'M':
        return &opts->copy_rate;
    case 'p':
        return &opts->context;
    case 'w':
        return &opts->worker;
    case 'e':
        return &opts->endpoint;
    case '6':
        return &opts->ipv6;
    case as_json:
        return &opts->as_json;
    }
    return nullptr;
}

void parse_value(int c, options *opts)
{
    switch (c) {
    case 'a':
        return;
    case 't':
        opts->transport = optarg;
        return;
    case 'm':
        opts->memory = optarg;
        return;
    case 'u':
        parse_features(optarg, opts);
        return;
    case 'n':
        opts->num_eps = number("-n", optarg);
        return;
    case 'N':
        opts->num_eps_per_node = number("-N", optarg);
        return;
    case 'D':
        opts->types_of_devices = one_of("-D", optarg, "all shm net self");
        return;
    case 'P':
        opts->placement = one_of("-P", optarg, "self intra inter");
        return;
    case 'A':
        opts->server = optarg;
        return;
    case 'F':
        opts->part_of_name = optarg;
        return;
    case pid:
        opts->pid = static_cast<pid_t>(number("--pid", optarg));
        return;
    case 'h':
        fputs(usage_text, stdout);
        exit(EXIT_SUCCESS);
    default:
        refuse_all();
    }
}

} // namespace

options parse_options(int argc, char **argv)
{
    options opts;
    for (int c; (c = getopt_long(argc, argv, "vdt:cfCF:abysTMpwem:u:n:N:D:P:A:6h", long_options,
                                 nullptr)) != -1;) {
        if (bool *flag = switch_of(c, &opts)) {
            *flag = true;
        } else {
            parse_value(c, &opts);
        }
    }
    opts.doctor = optind + 1 == argc && strcmp(argv[optind], "doctor") == 0;
    bool shows = opts.version || opts.build || opts.types || opts.system || opts.topology ||
                 opts.copy_rate || opts.devices || opts.config || opts.context || opts.worker ||
                 opts.endpoint || !opts.memory.empty() || opts.why_not || opts.doctor;
    if (optind + opts.doctor != argc || !shows) {
        refuse_all();
    }
    if (opts.features == 0) {
        opts.features = UCP_FEATURE_TAG | UCP_FEATURE_AM;
    }
    return opts;
}

} // namespace tools
