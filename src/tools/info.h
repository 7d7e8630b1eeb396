// SPDX-License-Identifier: BSD-3-Clause
// ucxlike_info's parts: each makes one report, which is printed as text or as JSON.
#pragma once

#include <ucp/api/ucp.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/socket.h>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace tools {

// Members keep the order in which they were added.
using json = nlohmann::ordered_json;

struct options {
    bool version = false;
    bool build = false;
    bool types = false;
    bool system = false;
    bool topology = false;
    bool copy_rate = false;
    bool devices = false;
    bool config = false;
    bool comment_defaults = false;
    bool docs = false;
    bool context = false;
    bool worker = false;
    bool endpoint = false;
    bool error_handling = false;
    bool why_not = false;
    bool doctor = false;
    bool as_json = false;
    pid_t pid = 0;         // the process that the doctor inspects; 0: this one
    std::string memory;    // size of -m
    std::string transport; // of -t
    std::string types_of_devices = "all";
    std::string placement = "self"; // of the peer of -e
    std::string server;             // address of -A; empty: none
    bool ipv6 = false;              // it is one
    std::string part_of_name;       // of -F: what the names of variables have; empty: all
    uint64_t features = 0;          // none were given
    size_t num_eps = 1;
    size_t num_eps_per_node = 1;
};

// Tells on standard error. True when it is an error.
bool failed(ucs_status_t status, const char *what);

// What a function prints to a stream.
std::string printed(const std::function<void(FILE *)> &print);
// As it is printed outside of JSON: a text without quotes, nothing for null.
std::string text(const json &value);
// The same of a member, which may be missing.
std::string text(const json &object, const char *member);
// One text for each line.
json lines_of(const std::string &text);

// Fills the options, or ends the process.
options parse_options(int argc, char **argv);

// Versions of what is involved.
json version_report();
void print_version(const json &report);

// The compiler, the sizes of types, the machine, how fast memory is copied.
json build_report();
json types_report();
json system_report();
double copy_rate(); // bytes a second
// "# name: value" lines of an object.
void print_members(const json &report);

// Memory domains, transports and devices.
bool report_devices(const options &opts, json *report);
void print_devices(const json &report);

// Every variable that the library reads by a table: its value, where that comes from.
bool report_settings(const options &opts, json *report);
void print_settings(const json &report, const options &opts);

// Providers and devices that are here and not used, and the reason.
bool report_unused(json *report);
void print_unused(const json &report);

// What may be wrong on this machine; whether something is.
json doctor_report(pid_t pid);
void print_doctor(const json &report);
bool has_findings(const json &report);

// Context, worker, endpoint, memory: ucp_*_print_info(). The peer is there already if it is a
// process of its own.
class other_process;
bool report_ucp(const options &opts, const other_process &peer, json *report);
// The context that the options ask for; nullptr: it was told why there is none.
ucp_context_h open_context(const options &opts);
void wait_for(ucp_worker_h worker, void *request);

// The peer of an endpoint to another process (-P intra) or, with its addresses on the network
// alone, as on another host (-P inter). The constructor forks: before anything of UCX is used.
class other_process {
  public:
    explicit other_process(const options &opts);
    ~other_process(); // ends it
    other_process(const other_process &) = delete;
    other_process &operator=(const other_process &) = delete;
    bool exists() const { return pid_ > 0; }
    // Of its worker; empty: it has failed, and has told why.
    const std::vector<char> &address() const { return address_; }

  private:
    pid_t pid_ = -1;
    int end_ = -1;
    std::vector<char> address_;
};

// The peer of an endpoint in client/server mode: a listener of the same worker (-A).
class own_server {
  public:
    own_server() = default;
    ~own_server();
    own_server(const own_server &) = delete;
    own_server &operator=(const own_server &) = delete;
    bool listen(const options &opts, ucp_worker_h worker);
    ucs_sock_addr_t address() const
    {
        return {reinterpret_cast<const sockaddr *>(&address_), length_};
    }
    void accept(); // the request that has come, if any

  private:
    ucp_worker_h worker_ = nullptr;
    ucp_listener_h listener_ = nullptr;
    ucp_conn_request_h request_ = nullptr;
    ucp_ep_h ep_ = nullptr;
    sockaddr_storage address_ = {};
    socklen_t length_ = 0;
};

} // namespace tools
