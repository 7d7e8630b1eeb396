// SPDX-License-Identifier: BSD-3-Clause
//
// A small libfabric application: what a test or benchmark of the provider needs of one side. Errors
// end the process with a line that says where, because each role of a test is a process of its own.
#pragma once

#include "fabtests-ext/common/require.h"

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <netinet/in.h>
#include <sched.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace app {

// The other role of the test, over a socket that is not under test.
class partner {
  public:
    explicit partner(int fd) : fd_(fd) {}
    void tell(const void *data, size_t length);
    void hear(void *data, size_t length);
    void tell(uint64_t v) { tell(&v, sizeof(v)); }
    uint64_t hear()
    {
        uint64_t v;
        hear(&v, sizeof(v));
        return v;
    }
    void barrier()
    {
        tell(1);
        hear();
    }
    // Something was told and not heard yet, or is within so many milliseconds.
    bool told(int milliseconds = 0) const;

  private:
    int fd_;
};

// The provider of the build tree, unless the environment names another.
void use_build_tree();

// How long what must come may take on a machine with much else to do; only what hangs takes so
// long.
constexpr std::chrono::seconds patience(300);
constexpr int patience_ms = static_cast<int>(std::chrono::milliseconds(patience).count());

// Runs both roles in processes of their own, from a parent that has not touched libfabric. The
// result is empty or says what went wrong.
using role = std::function<void(partner &)>;
std::string run_pair(const role &server, const role &client, int seconds = 900);

// The same for any number of processes, which meet at numbered points.
class crew {
  public:
    static constexpr int points = 16;
    explicit crew(std::atomic<int> *arrived) : arrived_(arrived) {}
    int arrive(int point) { return ++arrived_[point]; }
    int arrived(int point) const { return arrived_[point]; }

  private:
    std::atomic<int> *arrived_; // shared by the processes
};
using crew_role = std::function<void(int index, crew &)>;
// Members that kill themselves with SIGKILL have not failed.
std::string run_crew(int count, const crew_role &each, int seconds = 300);

class fabric_side;
struct options {
    const char *provider = "ucxlike";
    fi_ep_type type = FI_EP_RDM;
    uint64_t caps = FI_MSG | FI_TAGGED;
    fi_wait_obj wait = FI_WAIT_NONE;
    fi_wait_obj eq_wait = FI_WAIT_UNSPEC;
    fi_cq_format format = FI_CQ_FORMAT_TAGGED;
    fi_threading threading = FI_THREAD_SAFE;
    fi_progress progress = FI_PROGRESS_UNSPEC;
    int mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    bool with_eq = false; // for RDM too
    std::function<void(fabric_side &)> before_enable = {};
    uint64_t tx_op_flags = 0;
    uint64_t rx_op_flags = 0;
    uint64_t tx_bind = FI_TRANSMIT;
    uint64_t rx_bind = FI_RECV;
    size_t cq_size = 0;
    std::string node = "127.0.0.1";
    std::string service; // the port; empty: any
};

// Memory that the peer may touch, as it names it.
struct remote {
    uint64_t address;
    uint64_t key;
};

class fabric_side {
  public:
    explicit fabric_side(const options &o);
    ~fabric_side();
    fabric_side(const fabric_side &) = delete;
    fabric_side &operator=(const fabric_side &) = delete;

    // RDM: opens the endpoint and exchanges names.
    void open_rdm(partner &p);
    // MSG: both ends of one connection.
    void serve(partner &p, const void *param = nullptr, size_t length = 0);
    void dial(partner &p, const void *param = nullptr, size_t length = 0);
    // The pieces of those.
    sockaddr_in listen();    // returns where
    void listen(partner &p); // and tells it
    fi_info *await_request(void *param = nullptr, size_t *length = nullptr);
    void open_active(fi_info *info);
    void bind_and_enable();
    void close_active();

    // The next completion; error entries end the process unless `error` is given.
    fi_cq_tagged_entry complete(fid_cq *q, fi_cq_err_entry *error = nullptr,
                                fi_addr_t *source = nullptr);
    bool try_complete(fid_cq *q, fi_cq_tagged_entry *entry, int milliseconds);
    // The next event; `bytes` gets its data. An error entry gives 0 and fills `error`.
    uint32_t event(fi_eq_cm_entry *entry, std::string *bytes, fi_eq_err_entry *error,
                   int milliseconds = patience_ms);
    void expect_event(uint32_t type);
    // The next one is an error entry with this code; returns what it is about. `bytes` as above.
    fid_t expect_error(int code, std::string *bytes = nullptr);
    bool no_event(int milliseconds);
    // Gives the peer access to memory; ends with the object.
    remote expose(void *buffer, size_t length, uint64_t access, uint64_t requested_key = 1);
    void hide(); // takes it away again
    fid_cntr *counter(fi_wait_obj wait = FI_WAIT_UNSPEC);
    // One that counts these operations of the endpoint, which is not enabled yet.
    fid_cntr *counter_of(uint64_t operations, fi_wait_obj wait = FI_WAIT_UNSPEC);
    // Reads nothing away. As every wait here it gives the processor up, for the other role may have
    // no other.
    void progress()
    {
        fi_cq_read(txcq, nullptr, 0);
        fi_cq_read(rxcq, nullptr, 0);
        sched_yield();
    }
    // Progresses until the other role says something, and hears it.
    uint64_t serve_until_told(partner &p);
    // Both roles are here. A core with manual progress answers only when it is polled, and the
    // other role may still wait for an answer: so this one progresses until then.
    void barrier(partner &p)
    {
        p.tell(1);
        serve_until_told(p);
    }
    // Repeats a call while it says -FI_EAGAIN.
    template <class F>
    void retry(F &&f)
    {
        auto end = std::chrono::steady_clock::now() + patience;
        ssize_t r;
        while ((r = f()) == -FI_EAGAIN) {
            REQUIRE(std::chrono::steady_clock::now() < end);
            progress();
        }
        REQUIRE_EQ(r, 0);
    }

    options opt;
    fi_info *info = nullptr;
    fid_fabric *fabric = nullptr;
    fid_domain *domain = nullptr;
    fid_eq *eq = nullptr;
    fid_pep *pep = nullptr;
    fid_ep *ep = nullptr;
    fid_cq *txcq = nullptr;
    fid_cq *rxcq = nullptr;
    fid_av *av = nullptr;
    fi_addr_t peer = 0;

  private:
    fi_info *hints_ = nullptr;
    std::vector<fid_mr *> mrs_;
    std::vector<fid_cntr *> cntrs_;
};

// Of an endpoint that has one.
sockaddr_in name_of(fid *f);

std::vector<char> pattern(size_t length, unsigned seed);

// Of a multicast group. Its port is that of the process which asks first and of those it starts
// afterwards, so that runs side by side do not meet.
sockaddr_in group_address();

} // namespace app
