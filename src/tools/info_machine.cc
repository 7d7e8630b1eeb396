// SPDX-License-Identifier: BSD-3-Clause
// How the library was built, and on which machine it runs: see info.h.
#include "tools/info.h"

#include "config.h"

#include <uct/api/uct.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <sys/utsname.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace tools {
namespace {

std::string cpu_model()
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name") && line.find(": ") != std::string::npos) {
            return line.substr(line.find(": ") + 2);
        }
    }
    return "unknown";
}

} // namespace

json build_report()
{
    json report = json::object();
    report["version"] = PACKAGE_VERSION;
#ifdef __VERSION__
    report["compiler"] = __VERSION__;
#endif
#ifdef __OPTIMIZE__
    report["optimized"] = true;
#else
    report["optimized"] = false;
#endif
    return report;
}

json types_report()
{
    json report = json::object();
#define TYPE(t) report[#t] = sizeof(t)
    TYPE(ucp_params_t), TYPE(ucp_worker_params_t), TYPE(ucp_ep_params_t);
    TYPE(ucp_request_param_t), TYPE(ucp_mem_map_params_t), TYPE(ucp_tag_recv_info_t);
    TYPE(uct_iface_t), TYPE(uct_ep_t), TYPE(uct_iface_ops_t), TYPE(uct_iface_attr_t);
    TYPE(uct_iface_params_t), TYPE(uct_md_attr_t), TYPE(uct_completion_t);
    TYPE(uct_pending_req_t), TYPE(uct_tl_resource_desc_t), TYPE(uct_rkey_bundle_t);
#undef TYPE
    return report;
}

json system_report()
{
    json report = json::object();
    utsname kernel = {};
    uname(&kernel);
    report["host"] = kernel.nodename;
    report["kernel"] = std::string(kernel.sysname) + " " + kernel.release;
    report["architecture"] = kernel.machine;
    report["cpu model"] = cpu_model();
    report["cpus"] = std::thread::hardware_concurrency();
    report["page size"] = sysconf(_SC_PAGESIZE);
    report["memory"] = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                       static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return report;
}

double copy_rate()
{
    constexpr size_t size = size_t(16) << 20;
    constexpr unsigned copies = 8;
    std::vector<char> from(size, 1), to(size, 2);
    double best = 0;
    for (unsigned i = 0; i < copies; ++i) {
        auto begin = std::chrono::steady_clock::now();
        memcpy(to.data(), from.data(), size);
        asm volatile("" ::"r"(to.data()) : "memory");
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        best = std::max(best, size / took.count());
    }
    return best;
}

void print_members(const json &report)
{
    for (const auto &[name, value] : report.items()) {
        printf("# %24s: %s\n", name.c_str(), text(value).c_str());
    }
}

} // namespace tools
