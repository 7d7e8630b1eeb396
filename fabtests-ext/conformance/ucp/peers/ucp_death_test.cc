// SPDX-License-Identifier: BSD-3-Clause
//
// Death in the middle: each protocol is cut at each message that one side sends, by SIGKILL, or by
// SIGSTOP and SIGCONT. The side that is left has one result of each operation and one error of its
// endpoint, and closes; what was stopped goes on, and everything ends well on both sides. Both
// sides send, so that the one that ends is in the middle of an operation of its own and of one of
// the other's.
#include "fabtests-ext/common/ucp_duo.h"
#include "fabtests-ext/common/uct_tap.h"
#include "ucp/connect/cm_connection.h"
#include "ucp/core/worker.h"
#include "ucp/endpoint/ep.h"
#include "ucp/endpoint/ep_control.h"

#include <dlfcn.h>

namespace {

using namespace ucp_actor;

// ---- where it ends ----

// What the process does when it is there.
int last_signal = 0;
std::atomic<int> sends_left{-1}; // over sockets, before it; less than 0: it does not count them

void arrive()
{
    words().reached = 1;
    raise(last_signal);
}

void count_send()
{
    if (sends_left >= 0 && sends_left-- == 0) {
        arrive();
    }
}

class counter final : public uct_tap::observer {
  public:
    void count(int n) { left_ = n; } // less than 0: for ever
    size_t before(unsigned, uint8_t *, size_t length) override
    {
        if (left_ == 0) {
            left_ = -1;
            arrive();
        }
        return length;
    }
    void after() override { left_ -= left_ > 0; }

  private:
    int left_ = -1;
};

counter messages_left;

void go_on()
{
    messages_left.count(-1);
    sends_left = -1;
}

} // namespace

#define IN_FRONT_OF(name, parameters, arguments)                                                   \
    extern "C" __attribute__((visibility("default"))) ssize_t name parameters                      \
    {                                                                                              \
        static auto *next = reinterpret_cast<ssize_t(*) parameters>(dlsym(RTLD_NEXT, #name));      \
        count_send();                                                                              \
        return next arguments;                                                                     \
    }
IN_FRONT_OF(send, (int fd, const void *data, size_t length, int flags), (fd, data, length, flags))
IN_FRONT_OF(sendmsg, (int fd, const msghdr *message, int flags), (fd, message, flags))

namespace {

// ---- the two sides ----

// Over a lane: it is the third, and the connection of the two before it is shared.
enum class meeting { by_address, as_client, as_server, as_client_over_lane, as_server_over_lane };

struct scenario {
    const char *name;
    unsigned protocols;
    const char *scheme;
    meeting how = meeting::by_address; // of the side that ends
};

constexpr scenario scenarios[] = {
    {"tag_eager", tag_eager, "auto"},
    {"tag_fragments", tag_fragments, "auto"},
    {"tag_sync", tag_sync, "auto"},
    {"tag_rendezvous_by_get", tag_rendezvous, "auto"},
    {"tag_rendezvous_by_pieces", tag_rendezvous, "am"},
    {"am_eager", am_eager | am_reply, "auto"},
    {"am_fragments", am_fragments, "auto"},
    {"am_rendezvous_by_get", am_rendezvous, "auto"},
    {"am_rendezvous_by_pieces", am_rendezvous, "am"},
    {"stream", stream, "auto"},
    {"put", put, "auto"},
    {"get", get, "auto"},
    {"atomics", atomics, "auto"},
    {"client", tag_eager, "auto", meeting::as_client},
    {"server", tag_eager, "auto", meeting::as_server},
    {"client_over_lane", tag_eager, "auto", meeting::as_client_over_lane},
    {"server_over_lane", tag_eager, "auto", meeting::as_server_over_lane},
};

meeting other(meeting how)
{
    switch (how) {
    case meeting::as_client:
        return meeting::as_server;
    case meeting::as_server:
        return meeting::as_client;
    case meeting::as_client_over_lane:
        return meeting::as_server_over_lane;
    case meeting::as_server_over_lane:
        return meeting::as_client_over_lane;
    default:
        return meeting::by_address;
    }
}

bool is_client(meeting how)
{
    return how == meeting::as_client || how == meeting::as_client_over_lane;
}

bool is_over_lane(meeting how)
{
    return how == meeting::as_client_over_lane || how == meeting::as_server_over_lane;
}

// An endpoint that is made first. The next ones share its connection.
struct carrier {
    ucp_ep_h ep = nullptr;
    ucp_test::errors errors;

    bool stands() const { return ep && ep->state == ucp::ep_state::connected; }
};
constexpr size_t carrier_count = 2;

// Makes the endpoint. A server has it when a client has asked.
class party {
  public:
    party(const char *tls, const scenario &s, meeting how)
        : actor_(tls, s.scheme), protocols_(s.protocols), how_(how)
    {
        if (how != meeting::by_address && !is_client(how)) {
            listener_ = std::make_unique<ucp_test::server>(actor_.self());
        }
    }
    actor &side() { return actor_; }
    bool exists() const { return exists_; }
    // `ready` is called when nothing more is to be said to the test.
    bool meet(const channel &test, const std::function<void()> &ready)
    {
        if (how_ == meeting::by_address) {
            ready();
            exists_ = ucp_actor::meet(actor_, test);
            start();
            return exists_;
        }
        contact mine = {}, theirs;
        mine.memory = listener_ ? listener_->port : 0;
        if (!test.say(mine) || !test.hear(&theirs)) {
            return false;
        }
        const auto port = static_cast<uint16_t>(theirs.memory);
        if (!is_client(how_)) {
            ready_ = ready;
            begin_when_carried();
            return true;
        }
        while (is_over_lane(how_) && carriers_.size() < carrier_count) {
            if (!carry(port)) {
                return false;
            }
        }
        ready();
        ucp_ep_h ep = nullptr;
        if (ucp_test::connect(actor_.self(), port, &ep, &actor_.errors()) == UCS_OK) {
            asked_over_lane_ = !ep->control->by_cm->asking.empty();
            take(ep);
        }
        return exists_ && asked_over_lane_ == is_over_lane(how_);
    }
    void progress()
    {
        actor_.progress();
        begin_when_carried();
        if (!listener_ || listener_->requests.empty()) {
            return;
        }
        // The client may have gone.
        bool carries = is_over_lane(how_) && carriers_.size() < carrier_count;
        ucp_ep_h ep = nullptr;
        if (carries) {
            carrier &c = carriers_.emplace_back();
            (void)listener_->accept(&c.ep, &c.errors);
        } else if (listener_->accept(&ep, &actor_.errors()) == UCS_OK) {
            take(ep);
        }
    }
    bool all_is_well() const { return exists_ && actor_.sent() && actor_.received(); }
    void stop_listening() { listener_.reset(); }
    // Whether each has got no more than one error.
    bool leave_carriers()
    {
        bool well = true;
        for (carrier &c : carriers_) {
            if (c.ep) {
                well = ucp_test::wait({&actor_.self()}, ucp_test::close_nb(c.ep, true)) == UCS_OK &&
                       well;
            }
            well = well && c.errors.count <= 1;
        }
        carriers_.clear();
        return well;
    }

  private:
    bool carry(uint16_t port)
    {
        carrier &c = carriers_.emplace_back();
        return ucp_test::connect(actor_.self(), port, &c.ep, &c.errors) == UCS_OK &&
               ucp_test::run_until({&actor_.self()}, [&] {
                   return c.stands() &&
                          (carriers_.size() < carrier_count || c.ep->control->by_cm->cm->shared());
               });
    }
    void begin_when_carried()
    {
        bool carried = !is_over_lane(how_) || (carriers_.size() == carrier_count &&
                                               std::all_of(carriers_.begin(), carriers_.end(),
                                                           [](auto &c) { return c.stands(); }));
        if (ready_ && carried) {
            std::exchange(ready_, nullptr)();
        }
    }
    void take(ucp_ep_h ep)
    {
        actor_.take(ep);
        exists_ = true;
        start();
    }
    void start()
    {
        if (exists_) {
            actor_.start(protocols_);
        }
    }

    actor actor_;
    unsigned protocols_;
    meeting how_;
    bool exists_ = false;
    bool asked_over_lane_ = false;
    std::unique_ptr<ucp_test::server> listener_;
    std::function<void()> ready_;
    std::list<carrier> carriers_;
};

// Words of the test.
constexpr char has_gone = 'g', has_stopped = 's', both_are_done = 'b';
// Words to it.
constexpr char seen = 'r', done = 'd';

outcome close(party &p, outcome result)
{
    p.stop_listening();
    outcome left = p.side().leave(false);
    if (!p.leave_carriers()) {
        left = outcome::not_closed;
    }
    return result == outcome::ok ? left : result;
}

// Until both sides have what they wanted. `aside` is told words of the test in between.
outcome go_through(party &p, const channel &test, const std::function<bool(char)> &aside)
{
    bool told = false;
    outcome result = outcome::ok;
    char word = 0;
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(watchdog_ms);
    while (word != both_are_done) {
        for (int i = 0; i < 16; ++i) {
            p.progress();
        }
        if (!told && p.all_is_well()) {
            go_on();
            result = p.side().judge_success(); // now: the other one leaves when both are done
            told = test.say(done);
        }
        if (std::chrono::steady_clock::now() > end) {
            return outcome::no_result;
        }
        if (test.hear(&word, true) && !aside(word)) {
            return outcome::ok;
        }
    }
    return close(p, result);
}

// The side that ends, after n of its messages.
outcome end_after(unsigned n, int signal, const channel &test, const char *tls, const scenario &s)
{
    party p(tls, s, s.how);
    last_signal = signal;
    for (auto &i : p.side().self().worker->ifaces) {
        uct_tap::install(i->uct, &messages_left);
    }
    auto count = [&] {
        if (s.how == meeting::by_address || is_over_lane(s.how)) {
            messages_left.count(static_cast<int>(n));
        } else {
            sends_left = static_cast<int>(n);
        }
    };
    if (!p.meet(test, count)) {
        return outcome::not_set_up;
    }
    return go_through(p, test, [](char) { return true; });
}

// The side that is left.
outcome stay(const channel &test, const char *tls, const scenario &s)
{
    party p(tls, s, other(s.how));
    if (!p.meet(test, [] {})) {
        // It was dead before it could be connected to, and the call has said so.
        char word = 0;
        return test.hear(&word) && word == has_gone ? outcome::ok : outcome::not_set_up;
    }
    bool gone = false;
    outcome result = go_through(p, test, [&](char word) {
        gone = word == has_gone;
        for (int i = 0; word == has_stopped && i < 200; ++i) {
            p.progress();
        }
        return word == has_stopped ? test.say(seen) : !gone;
    });
    if (!gone) {
        return result;
    }
    for (int i = 0; i < 200; ++i) {
        p.progress(); // a request of a client that has gone
    }
    p.stop_listening();
    if (!p.exists()) {
        return p.leave_carriers() ? outcome::ok : outcome::not_closed;
    }
    result = p.side().judge_end();
    outcome left = p.side().leave(true);
    if (!p.leave_carriers()) {
        left = outcome::not_closed;
    }
    return result == outcome::ok ? left : result;
}

// ---- the test ----

using parameter = std::tuple<scenario, const char *>;

class ucp_death : public testing::TestWithParam<parameter> {
  protected:
    // Runs until the process is where it ends, or both are done. Whether it got there.
    static bool run(unsigned n, int signal)
    {
        const auto &[s, tls] = GetParam();
        words().reached = 0;
        process ends, stays;
        ends.start(
            [&, tls = tls, s = s](const channel &c) { return end_after(n, signal, c, tls, s); });
        stays.start([&, tls = tls, s = s](const channel &c) { return stay(c, tls, s); });
        EXPECT_TRUE(introduce(ends, stays));
        if (signal == SIGKILL && has_ended(ends)) {
            EXPECT_EQ(ends.end(), -SIGKILL);
            EXPECT_TRUE(stays.to.say(has_gone));
            EXPECT_EQ(stays.end(), 0);
            return true;
        }
        bool stopped = signal == SIGSTOP && has_stopped_itself(ends);
        bool stays_is_done = stopped && go_on_when_seen(ends, stays);
        finish(ends, stays, stays_is_done);
        return stopped;
    }

  private:
    // Else it has said that it is done.
    static bool has_ended(const process &one)
    {
        pollfd p[] = {{one.pidfd, POLLIN, 0}, {one.to.fd(), POLLIN, 0}};
        return poll(p, 2, watchdog_ms) > 0 && p[1].revents != POLLIN;
    }
    static bool has_stopped_itself(const process &one)
    {
        siginfo_t info = {};
        pollfd p = {one.to.fd(), POLLIN, 0};
        while (poll(&p, 1, 1) == 0) {
            if (waitid(P_PID, static_cast<id_t>(one.pid), &info, WSTOPPED | WNOHANG) == 0 &&
                info.si_pid == one.pid) {
                return true;
            }
        }
        return false;
    }
    // Whether the other one has said meanwhile that it is done.
    static bool go_on_when_seen(const process &stopped, const process &stays)
    {
        bool is_done = false;
        EXPECT_TRUE(stays.to.say(has_stopped));
        for (char word = 0; word != seen; is_done |= word == done) {
            if (!stays.to.hear(&word)) {
                ADD_FAILURE() << "it has ended, too";
                break;
            }
        }
        kill(stopped.pid, SIGCONT);
        return is_done;
    }
    static void finish(process &ends, process &stays, bool stays_is_done)
    {
        char word = 0;
        EXPECT_TRUE(ends.to.hear(&word) && word == done);
        EXPECT_TRUE(stays_is_done || (stays.to.hear(&word) && word == done));
        EXPECT_TRUE(ends.to.say(both_are_done));
        EXPECT_TRUE(stays.to.say(both_are_done));
        EXPECT_EQ(ends.end(), 0);
        EXPECT_EQ(stays.end(), 0);
    }
};

// All messages with UCXLIKE_DEATHS=all, else one of eight, another one in each scenario.
void cut_at_each(int signal, const char *name, const std::function<bool(unsigned, int)> &run)
{
    constexpr unsigned most = 64; // messages, that is: something does not end
    const char *asked = getenv("UCXLIKE_DEATHS");
    bool all = asked && std::string(asked) == "all";
    unsigned step = all ? 1 : 8, n = all ? 0 : static_cast<unsigned>(strlen(name)) % step;
    while (n < most && run(n, signal) && !testing::Test::HasFailure()) {
        n += step;
    }
    EXPECT_FALSE(testing::Test::HasFailure()) << "at message " << n;
    EXPECT_TRUE(!all || n > 0) << "it has sent nothing";
    EXPECT_LT(n, most);
}

TEST_P(ucp_death, by_sigkill_at_each_message)
{
    cut_at_each(SIGKILL, std::get<0>(GetParam()).name, run);
}

TEST_P(ucp_death, goes_on_after_sigstop_at_each_message)
{
    cut_at_each(SIGSTOP, std::get<0>(GetParam()).name, run);
}

std::string name_of(const testing::TestParamInfo<parameter> &info)
{
    return std::string(std::get<0>(info.param).name) + "_over_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(of, ucp_death,
                         testing::Combine(testing::ValuesIn(scenarios),
                                          testing::Values("sm", "tcp")),
                         name_of);

} // namespace
