// SPDX-License-Identifier: BSD-3-Clause
//
// The contract of events (fi_ucxlike(7)) under random schedules of both sides: connect, accept,
// reject, shutdown, close, traffic (plain messages, messages that wait for the receiver's word,
// writes and reads), and death of the client's process, each at any moment. Per
// endpoint: at most one FI_CONNECTED; exactly one last event, FI_SHUTDOWN or an error, which is not
// lost and which cannot be read before everything posted has completed; nothing after it, nothing
// after fi_close. UCXLIKE_TEST_STEPS sets how many steps a side takes, UCXLIKE_TEST_SEED another
// schedule, and UCXLIKE_TEST_VERBS_ADDRESS an address on a verbs device, over which it runs as
// well.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/schedule.h"

#include <algorithm>
#include <arpa/inet.h>
#include <csignal>
#include <gtest/gtest.h>
#include <memory>
#include <netinet/in.h>
#include <random>
#include <set>
#include <sys/prctl.h>
#include <sys/wait.h>

using namespace app;
using schedule::number;

namespace {

constexpr unsigned lives = 3, rounds_of_a_life = 3, most_ends = 6;

unsigned steps_of_a_round()
{
    return number("UCXLIKE_TEST_STEPS", 900) / (lives * rounds_of_a_life);
}

struct transport {
    const char *name, *tls;
    std::string node;
};

void PrintTo(const transport &t, std::ostream *out)
{
    *out << t.name;
}

struct end;

struct op {
    end *of;
    char bytes[64];
};

// An endpoint as the contract sees it.
struct end {
    enum state { opened, started, connected, over } now = opened;
    fid_ep *ep = nullptr;
    std::set<op *> posted;
};

class side {
  public:
    side(const std::string &node, unsigned seed) : app_(make_options(node)), random_(seed)
    {
        at_ = app_.expose(open_memory_, sizeof(open_memory_), FI_REMOTE_READ | FI_REMOTE_WRITE);
    }

    ~side()
    {
        for (fi_info *request : held_) {
            reject(request);
        }
        close_all();
        poll();
    }

    // ---- what a step can do

    void step(const sockaddr_storage *server)
    {
        switch (pick(12)) {
        case 0:
        case 1:
            if (server && ends_.size() < most_ends) {
                dial(server);
            }
            break;
        case 2:
        case 3:
            answer_one();
            break;
        case 4:
            if (end *e = any()) {
                (void)fi_shutdown(e->ep, 0);
            }
            break;
        case 5:
            if (end *e = any()) {
                close(e);
            }
            break;
        case 6:
        case 7:
            if (end *e = any()) {
                post(e, kind::receive);
            }
            break;
        case 8:
        case 9:
            if (end *e = any()) {
                post(e, static_cast<kind>(pick(4)));
            }
            break;
        default:
            break;
        }
        // Now and then long enough for the other side to answer.
        auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(pick(4));
        do {
            poll();
        } while (std::chrono::steady_clock::now() < until);
    }

    void listen(partner &p) { app_.listen(p); }

    void dial(const sockaddr_storage *server)
    {
        sockaddr_storage to = *server;
        if (pick(10) == 0) {
            set_port(&to, 1); // where none listens
        }
        end *e = open(app_.info);
        REQUIRE_EQ(fi_connect(e->ep, &to, "client", 6), 0);
        e->now = end::started;
    }

    // ---- quiet

    // Everything of this side is closed: no event may follow.
    void close_all()
    {
        while (!ends_.empty()) {
            close(ends_.back().get());
        }
    }

    void reject_all()
    {
        for (fi_info *request : held_) {
            reject(request);
        }
        held_.clear();
    }

    // Every endpoint that has begun must come to its end now, because the other side has gone.
    void await_ends()
    {
        auto limit = std::chrono::steady_clock::now() + patience;
        auto open = [](const auto &e) {
            return e->now == end::started || e->now == end::connected;
        };
        while (std::any_of(ends_.begin(), ends_.end(), open)) {
            if (std::chrono::steady_clock::now() > limit) {
                fprintf(stderr, "a last event is lost: the state is %d\n",
                        (*std::find_if(ends_.begin(), ends_.end(), open))->now);
                _exit(1);
            }
            poll();
        }
    }

    void poll()
    {
        for (int i = 0; i < 3; ++i) {
            read_events();
            read_completions();
        }
    }

    unsigned pick(unsigned n) { return static_cast<unsigned>(random_()) % n; }
    unsigned connected_ever = 0, ended_ever = 0;

  private:
    static options make_options(const std::string &node)
    {
        options o;
        o.type = FI_EP_MSG;
        o.caps = FI_MSG | FI_RMA;
        o.mr_mode = 0; // both sides know the key and count addresses from 0
        o.node = node;
        return o;
    }

    static void set_port(sockaddr_storage *a, uint16_t port)
    {
        if (a->ss_family == AF_INET6) {
            reinterpret_cast<sockaddr_in6 *>(a)->sin6_port = htons(port);
        } else {
            reinterpret_cast<sockaddr_in *>(a)->sin_port = htons(port);
        }
    }

    end *open(fi_info *info)
    {
        app_.ep = nullptr;
        app_.open_active(info);
        ends_.push_back(std::make_unique<end>());
        ends_.back()->ep = std::exchange(app_.ep, nullptr);
        return ends_.back().get();
    }

    end *any()
    {
        return ends_.empty() ? nullptr : ends_[pick(static_cast<unsigned>(ends_.size()))].get();
    }

    void close(end *e)
    {
        REQUIRE_EQ(fi_close(&e->ep->fid), 0);
        for (op *o : e->posted) {
            o->of = nullptr; // its completion may lie in the queue
        }
        std::erase_if(ends_, [e](const auto &i) { return i.get() == e; });
    }

    void answer_one()
    {
        if (held_.empty()) {
            return;
        }
        size_t i = pick(static_cast<unsigned>(held_.size()));
        fi_info *request = held_[i];
        held_.erase(held_.begin() + static_cast<long>(i));
        unsigned answer = pick(5);
        if (answer == 0 || ends_.size() >= most_ends) {
            reject(request);
            return;
        }
        end *e = open(request);
        fi_freeinfo(request);
        if (answer == 1) {
            close(e); // neither accepted nor rejected
            return;
        }
        REQUIRE_EQ(fi_accept(e->ep, "server", 6), 0);
        e->now = end::started;
    }

    void reject(fi_info *request)
    {
        REQUIRE_EQ(fi_reject(app_.pep, request->handle, "no", 2), 0);
        fi_freeinfo(request);
    }

    enum class kind { send, deliver, write, read, receive };

    ssize_t start(end *e, kind k, op *o)
    {
        size_t length = 1 + pick(sizeof(o->bytes));
        switch (k) {
        case kind::send:
            return fi_send(e->ep, o->bytes, length, nullptr, 0, o);
        case kind::deliver: {
            iovec iov = {o->bytes, length};
            fi_msg m = {};
            m.msg_iov = &iov;
            m.iov_count = 1;
            m.context = o;
            return fi_sendmsg(e->ep, &m, FI_COMPLETION | FI_DELIVERY_COMPLETE);
        }
        case kind::write:
            return fi_write(e->ep, o->bytes, length, nullptr, 0, 0, at_.key, o);
        case kind::read:
            return fi_read(e->ep, o->bytes, length, nullptr, 0, 0, at_.key, o);
        case kind::receive:
            break;
        }
        return fi_recv(e->ep, o->bytes, sizeof(o->bytes), nullptr, 0, o);
    }

    void post(end *e, kind k)
    {
        auto *o = new op{e, {}};
        ssize_t r = start(e, k, o);
        if (r == 0) {
            e->posted.insert(o);
        } else {
            delete o;
        }
    }

    void read_completions()
    {
        for (fid_cq *q : {app_.txcq, app_.rxcq}) {
            for (;;) {
                fi_cq_tagged_entry entry = {};
                fi_cq_err_entry error = {};
                ssize_t n = fi_cq_read(q, &entry, 1);
                if (n == -FI_EAGAIN) {
                    break;
                }
                if (n == -FI_EAVAIL) {
                    REQUIRE_EQ(fi_cq_readerr(q, &error, 0), 1);
                    entry.op_context = error.op_context;
                } else {
                    REQUIRE_EQ(n, 1);
                }
                auto *o = static_cast<op *>(entry.op_context);
                if (o->of) {
                    REQUIRE_EQ(o->of->posted.erase(o), 1); // once each
                }
                delete o;
            }
        }
    }

    end *find(fid_t fid)
    {
        for (auto &e : ends_) {
            if (&e->ep->fid == fid) {
                return e.get();
            }
        }
        fprintf(stderr, "an event of an endpoint that is closed\n");
        _exit(1);
    }

    void ended(fid_t fid)
    {
        end *e = find(fid);
        REQUIRE(e->now == end::started || e->now == end::connected);
        e->now = end::over;
        ++ended_ever;
        read_completions();
        REQUIRE_EQ(e->posted.size(), 0); // all flushed before this event
    }

    void read_events()
    {
        alignas(fi_eq_cm_entry) char buffer[2048];
        uint32_t type = 0;
        ssize_t n = fi_eq_read(app_.eq, &type, buffer, sizeof(buffer), 0);
        if (n == -FI_EAGAIN) {
            return;
        }
        if (n == -FI_EAVAIL) {
            fi_eq_err_entry error = {};
            REQUIRE_EQ(fi_eq_readerr(app_.eq, &error, 0), static_cast<ssize_t>(sizeof(error)));
            REQUIRE(error.err > 0);
            ended(error.fid);
            return;
        }
        REQUIRE(n > 0);
        fi_eq_cm_entry entry;
        memcpy(static_cast<void *>(&entry), buffer, sizeof(entry));
        if (type == FI_CONNREQ) {
            held_.push_back(entry.info);
        } else if (type == FI_CONNECTED) {
            end *e = find(entry.fid);
            REQUIRE_EQ(e->now, end::started);
            e->now = end::connected;
            ++connected_ever;
        } else {
            REQUIRE_EQ(type, static_cast<uint32_t>(FI_SHUTDOWN));
            ended(entry.fid);
        }
    }

    fabric_side app_;
    char open_memory_[sizeof(op::bytes)] = {};
    remote at_ = {};
    std::minstd_rand random_;
    std::vector<std::unique_ptr<end>> ends_;
    std::vector<fi_info *> held_;
};

// What ends a round, chosen by the client: which side goes quiet first.
enum word : uint64_t { client_closes = 1, server_closes, all_over };

void serve(partner &p, const transport &t, unsigned seed)
{
    side s(t.node, seed);
    s.listen(p);
    for (;;) {
        while (!p.told()) {
            s.step(nullptr);
        }
        uint64_t w = p.hear();
        if (w == all_over) {
            break;
        }
        if (w == server_closes) {
            s.close_all();
            p.tell(1);
            while (!p.told()) { // until all of the client's have ended
                s.poll();
                s.reject_all();
            }
            p.hear();
        } else {
            s.await_ends();
        }
        p.tell(1);
    }
    s.reject_all();
    s.close_all();
    s.poll();
    printf("the server has seen %u connections and %u ends\n", s.connected_ever, s.ended_ever);
    // A schedule in which nothing ever connected would prove nothing.
    REQUIRE(s.connected_ever > 0 && s.ended_ever > 0);
}

void rounds(partner &p, const transport &t, const sockaddr_storage &server, unsigned seed,
            bool dies)
{
    side s(t.node, seed);
    for (unsigned round = 0; round < rounds_of_a_life; ++round) {
        for (unsigned i = 0; i < steps_of_a_round(); ++i) {
            s.step(&server);
        }
        if (dies && round + 1 == rounds_of_a_life) {
            kill(getpid(), SIGKILL);
        }
        uint64_t w = s.pick(2) ? client_closes : server_closes;
        if (w == client_closes) {
            s.close_all();
        }
        p.tell(w);
        if (w == server_closes) {
            while (!p.told()) {
                s.poll();
            }
            p.hear();
            s.await_ends();
            s.close_all();
            p.tell(1);
        }
        while (!p.told()) {
            s.poll();
        }
        p.hear();
    }
}

// One process after the other is the client; this one does not touch libfabric.
void dial_in_lives(partner &p, const transport &t, unsigned seed)
{
    sockaddr_storage server = {};
    p.hear(&server, sizeof(sockaddr_in));
    for (unsigned life = 0; life < lives; ++life) {
        bool dies = life % 2 == 1;
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            rounds(p, t, server, seed + life, dies);
            _exit(0);
        }
        int status = 0;
        REQUIRE_EQ(waitpid(child, &status, 0), child);
        if (!dies) {
            REQUIRE_EQ(status, 0);
            continue;
        }
        REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        p.tell(client_closes); // the dead cannot
        p.hear();
    }
    p.tell(all_over);
}

std::vector<transport> transports()
{
    std::vector<transport> all = {{"sm", "\\sm,tcp", "127.0.0.1"},
                                  {"ofi_shm", "ofi_shm,tcp", "127.0.0.1"},
                                  {"tcp", "tcp", "127.0.0.1"}};
    if (const char *address = getenv("UCXLIKE_TEST_VERBS_ADDRESS")) {
        all.push_back({"verbs", "verbs", address});
    }
    return all;
}

class prov_cm_schedule_test : public testing::TestWithParam<transport> {};

TEST_P(prov_cm_schedule_test, every_endpoint_has_one_end)
{
    transport t = GetParam();
    unsigned seed = number("UCXLIKE_TEST_SEED", 1);
    RecordProperty("seed", static_cast<int>(seed));
    role server = [&](partner &p) {
        setenv("FI_UCXLIKE_TLS", t.tls, 1);
        serve(p, t, seed);
    };
    role client = [&](partner &p) {
        setenv("FI_UCXLIKE_TLS", t.tls, 1);
        dial_in_lives(p, t, seed + 1000);
    };
    int seconds = 300 + static_cast<int>(number("UCXLIKE_TEST_STEPS", 0) / 50);
    EXPECT_EQ(run_pair(server, client, seconds), "") << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(, prov_cm_schedule_test, testing::ValuesIn(transports()),
                         [](const auto &i) { return std::string(i.param.name); });

} // namespace
