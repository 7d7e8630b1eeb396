// SPDX-License-Identifier: BSD-3-Clause
// ucxlike_selftest: two processes use each class of operation over one transport and compare every
// byte. Each test is a session of its own: a control connection (TCP), a process on each side, a
// context of one transport. What goes wrong in a session, be it a crash, fails that test alone.
#pragma once

#include <ucp/api/ucp.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace selftest {

using json = nlohmann::ordered_json;

struct options {
    std::vector<std::string> names; // of transports or providers; empty: all
    std::string device;             // empty: any
    std::string host;               // of the server; empty: the tool starts one
    std::string port = "13338";
    bool server = false;
    bool as_json = false;
    bool list = false;     // the tests
    size_t large = 0;      // bytes of the large message; 0: by the core
    unsigned limit = 30;   // seconds that a step may take
    std::string only_test; // empty: all
};

// Ends a test: with a failure, or because this fabric or transport has no such thing.
struct failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};
struct unsupported : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Throws a failure that says what was tried.
void must(ucs_status_t status, const char *what);

// Ends the process with a message.
[[noreturn]] void refuse(const std::string &text);

// control.cc: messages between the two processes of a session. ---------------------------------

class control {
  public:
    explicit control(int fd) : fd_(fd) {}
    control(control &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    control &operator=(control &&) = delete;
    ~control();

    void say(const std::string &text) { send('m', text); }
    // Tells the other side that the test has failed here; no failure of its own.
    void complain(const std::string &text, bool is_unsupported) noexcept;
    // A message has come. Throws when the other side has complained or gone.
    bool has_message();
    // Waits for it.
    std::string hear(unsigned limit);
    // The other side has closed its end.
    bool has_ended();

  private:
    void send(char kind, const std::string &text);
    void read_all(void *to, size_t length);

    int fd_;
};

// A socket that listens. The port is set to the one that was taken. Ends the process with a
// message when it is in use.
int listen_at(const char *host, std::string *port);
// Throws a failure when nothing listens there.
control connect_to(const std::string &host, const std::string &port);

// peer.cc: a context of one transport, and an endpoint to the other process. -------------------

struct session {
    std::string transport;
    std::string test;
    size_t large;
    unsigned limit;
};

class peer {
  public:
    peer(const session &about, uint64_t features, bool watches_death, control *link);
    peer(const peer &) = delete;
    peer &operator=(const peer &) = delete;
    ~peer();

    // Exchanges addresses and makes the endpoint.
    void connect();
    // Until the request is over, or the condition holds. Throw when that takes too long or the
    // other side has gone.
    void wait(ucs_status_ptr_t request, const char *what);
    void until(const std::function<bool()> &over, const char *what);
    // Control messages; the worker progresses meanwhile.
    void say(const std::string &text) { link->say(text); }
    std::string hear();
    // Both sides have come here.
    void meet();
    void flush();

    const session about;
    control *const link;
    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
    ucp_ep_h ep = nullptr;
    ucs_status_t failed_with = UCS_OK; // by the error handler
    bool expects_death = false;

  private:
    void open(uint64_t features);
    void close_ep();

    const bool watches_death_;
};

// Memory of the server that the client reaches.
class shared_memory {
  public:
    // Both sides call this; the server has the memory, the client the key.
    shared_memory(peer *p, bool owner, size_t length);
    shared_memory(const shared_memory &) = delete;
    shared_memory &operator=(const shared_memory &) = delete;
    ~shared_memory();

    std::vector<char> data; // of the owner
    uint64_t address = 0;
    ucp_rkey_h key = nullptr;

  private:
    peer *p_;
    ucp_mem_h memory_ = nullptr;
};

// Bytes that follow from a seed; which of them differs first: throws a failure.
void fill(std::span<char> data, uint64_t seed);
std::vector<char> filled(size_t length, uint64_t seed);
void compare(std::span<const char> data, uint64_t seed, const char *what);

// The tests. -----------------------------------------------------------------------------------

// Returns what is worth saying of a success, or nothing.
using side = std::string (*)(peer &);

struct test {
    const char *name;
    uint64_t features;
    bool watches_death; // of endpoints
    side client;
    side server;
};

extern const test tag_eager, tag_rendezvous, large_message; // tag.cc
extern const test am_eager, am_rendezvous;                  // active_message.cc
extern const test stream_bytes;                             // stream.cc
extern const test puts_and_gets;                            // rma.cc
extern const test atomics32, atomics64;                     // atomics.cc
extern const test flush_and_fence;                          // order.cc
extern const test sleep_and_wakeup;                         // wakeup.cc
extern const test death_of_peer;                            // death.cc

std::span<const test *const> all_tests(); // run.cc
const test *find_test(const std::string &name);

// The parts of the run. ------------------------------------------------------------------------

struct result {
    std::string status; // "pass", "fail", "unsupported"
    std::string note;
};

// Versions, transports with what their cores offer, what is supplied, what is not used.
// In a process of its own, so that this one does not use the library.
json discover(const options &opts);

// The server: serves sessions until a client's run is over. True: it came to that.
bool serve(int listener, unsigned limit);

// A session of one test, as its client.
result run_test(const options &opts, const session &about);
// In a process of its own: what the function returns; crashes and long waits are failures.
result apart(unsigned limit, const std::function<result()> &run);
// The name and the versions of the server's host; ends the process when it cannot be used.
std::string greet(const options &opts, unsigned limit);
// Ends the server.
void dismiss(const options &opts);
// How one side of a test ends.
result outcome_of(const std::function<std::string()> &body);

void print_head(const json &report);
void print_transport(const json &transport);
void print_result(const json &row);
void print_end(const json &report);

inline constexpr const char *protocol = "ucxlike_selftest 1";
// Names, versions of this host in one line.
std::string own_versions();

} // namespace selftest
