// SPDX-License-Identifier: BSD-3-Clause
//
// One allocation of the provider fails: the call returns its error, or what it began ends with one,
// and the same again works. Each n-th allocation of a run fails in a process of its own.
// UCXLIKE_ALLOCATION=all tries every n, UCXLIKE_ALLOCATION=n that one.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/open_files.h"
#include "fabtests-ext/common/own_allocations.h"

#include <gtest/gtest.h>
#include <netinet/in.h>

namespace {

constexpr size_t small = 8, large = 300000;
constexpr uint64_t rdm_caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;

// What a run has opened. Two endpoints of one domain talk with each other.
class run_of_all : own_allocations::steps {
  public:
    explicit run_of_all(fi_ep_type type) : type_(type) {}
    run_of_all(const run_of_all &) = delete;
    run_of_all &operator=(const run_of_all &) = delete;
    ~run_of_all() { close_all(); }

    std::string wrong()
    {
        bool well = twice("opening", [this] { return open(); });
        if (well && type_ == FI_EP_RDM) {
            well = twice("messages", [this] { return exchange_messages(); }) &&
                   twice("remote memory", [this] { return use_remote_memory(); });
        } else if (well) {
            well = twice("a connection", [this] { return connect(); });
        }
        close_all();
        return wrong_;
    }

  private:
    // An error may have ended endpoints: a step opens them again.
    bool works(const char *what, ssize_t result)
    {
        const char *why = result < 0 ? fi_strerror(static_cast<int>(-result)) : "";
        return steps::works(what, result >= 0, why);
    }

    template <class Done>
    bool until(Done &&done)
    {
        auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (!done()) {
            if (std::chrono::steady_clock::now() > end) {
                return false;
            }
        }
        return true;
    }

    template <class F>
    bool posts(const char *what, F &&post)
    {
        ssize_t r = 0;
        bool over = until([&] {
            r = post();
            take_completions();
            return r != -FI_EAGAIN;
        });
        if (!over) {
            wrong_ += std::string(what) + " is refused for ever; ";
        }
        return over && works(what, r);
    }

    bool take_completions();
    bool ends(const char *what, unsigned completions);
    bool open();
    bool open_endpoint(fid_ep **ep, fi_info *info);
    bool open_pair();
    bool exchange_messages();
    ssize_t send_to_be_told(const std::vector<char> &out);
    bool exchange(size_t length);
    bool use_remote_memory();
    bool access(uint64_t address, uint64_t key);
    bool connect();
    bool await_event(uint32_t wanted, fi_eq_cm_entry *entry);
    void close_endpoints();
    void close_all();
    template <class Fid>
    void close(Fid **f);

    const fi_ep_type type_;
    fi_info *info_ = nullptr;
    fid_fabric *fabric_ = nullptr;
    fid_domain *domain_ = nullptr;
    fid_eq *eq_ = nullptr;
    fid_cq *cq_ = nullptr;
    fid_av *av_ = nullptr;
    fid_pep *pep_ = nullptr;
    fid_ep *eps_[2] = {};
    fi_addr_t to_ = FI_ADDR_UNSPEC;
    unsigned completed_ = 0;
    int error_ = 0; // of a completion
    std::vector<char> memory_;
};

template <class Fid>
void run_of_all::close(Fid **f)
{
    if (*f) {
        int r = fi_close(&(*f)->fid);
        if (r != 0) {
            wrong_ += "fi_close " + std::to_string(r) + "; ";
        }
        *f = nullptr;
    }
}

// Whether there were any.
bool run_of_all::take_completions()
{
    fi_cq_tagged_entry entries[8];
    ssize_t n = fi_cq_read(cq_, entries, 8);
    if (n > 0) {
        completed_ += static_cast<unsigned>(n);
        return true;
    }
    fi_cq_err_entry e = {};
    if (n != -FI_EAVAIL || fi_cq_readerr(cq_, &e, 0) != 1) {
        return false;
    }
    ++completed_;
    error_ = e.err;
    return true;
}

// So many operations have ended, well or not. The first error may be of the partner of others.
bool run_of_all::ends(const char *what, unsigned completions)
{
    if (!until([&] {
            take_completions();
            return completed_ >= completions || error_;
        })) {
        wrong_ += std::string(what) + " does not end; ";
        return false;
    }
    return works(what, -error_);
}

bool run_of_all::open()
{
    close_all();
    fi_info *hints = fi_allocinfo();
    hints->caps = type_ == FI_EP_RDM ? rdm_caps : FI_MSG;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = type_;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup("ucxlike");
    int found = fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info_);
    fi_freeinfo(hints);
    fi_eq_attr e = {};
    e.wait_obj = FI_WAIT_UNSPEC;
    fi_cq_attr c = {};
    c.format = FI_CQ_FORMAT_TAGGED;
    fi_av_attr v = {};
    v.type = FI_AV_TABLE;
    return works("getinfo", found) &&
           works("fabric", fi_fabric(info_->fabric_attr, &fabric_, nullptr)) &&
           works("eq_open", fi_eq_open(fabric_, &e, &eq_, nullptr)) &&
           works("domain", fi_domain(fabric_, info_, &domain_, nullptr)) &&
           works("cq_open", fi_cq_open(domain_, &c, &cq_, nullptr)) &&
           works("av_open", fi_av_open(domain_, &v, &av_, nullptr));
}

bool run_of_all::open_endpoint(fid_ep **ep, fi_info *info)
{
    return works("endpoint", fi_endpoint(domain_, info, ep, nullptr)) &&
           works("bind", fi_ep_bind(*ep, &cq_->fid, FI_TRANSMIT | FI_RECV)) &&
           works("bind", type_ == FI_EP_RDM ? fi_ep_bind(*ep, &av_->fid, 0)
                                            : fi_ep_bind(*ep, &eq_->fid, 0)) &&
           works("enable", fi_enable(*ep));
}

bool run_of_all::open_pair()
{
    close_endpoints();
    char name[256] = {};
    size_t length = sizeof(name);
    return open_endpoint(&eps_[0], info_) && open_endpoint(&eps_[1], info_) &&
           works("getname", fi_getname(&eps_[1]->fid, name, &length)) &&
           works("av_insert", fi_av_insert(av_, name, 1, &to_, 0, nullptr) - 1);
}

// A receiver without memory for a sender cuts it off. A message may be lost with that, as by the
// death of the receiver; one that is complete when it is delivered ends with an error.
ssize_t run_of_all::send_to_be_told(const std::vector<char> &out)
{
    iovec iov = {const_cast<char *>(out.data()), out.size()};
    fi_msg_tagged m = {};
    m.msg_iov = &iov;
    m.iov_count = 1;
    m.addr = to_;
    m.tag = 1;
    return fi_tsendmsg(eps_[0], &m, FI_DELIVERY_COMPLETE);
}

bool run_of_all::exchange(size_t length)
{
    completed_ = 0;
    error_ = 0;
    std::vector<char> out = app::pattern(length, 1), in(length);
    bool posted = posts("trecv", [&] {
        return fi_trecv(eps_[1], in.data(), length, nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr);
    });
    bool well =
        posted && posts("tsend", [&] { return send_to_be_told(out); }) && ends("a message", 2);
    if (well && in != out) {
        wrong_ += "another message came; ";
    }
    if (!well) {
        close_endpoints(); // before the buffers go
    }
    return well;
}

bool run_of_all::exchange_messages()
{
    return open_pair() && exchange(small) && exchange(large);
}

bool run_of_all::access(uint64_t address, uint64_t key)
{
    std::vector<char> out = app::pattern(large, 2), in(large);
    completed_ = 0;
    error_ = 0;
    unsigned posted = 0;
    bool well = true;
    for (size_t length : {small, large}) {
        well = well &&
               posts("write",
                     [&] {
                         return fi_write(eps_[0], out.data(), length, nullptr, to_, address, key,
                                         nullptr);
                     }) &&
               ends("a write", ++posted) &&
               posts("read",
                     [&] {
                         return fi_read(eps_[0], in.data(), length, nullptr, to_, address, key,
                                        nullptr);
                     }) &&
               ends("a read", ++posted);
        if (well && memcmp(in.data(), out.data(), length) != 0) {
            wrong_ += "other memory was read; ";
        }
    }
    uint64_t one = 1;
    well = well &&
           posts("atomic",
                 [&] {
                     return fi_atomic(eps_[0], &one, 1, nullptr, to_, address, key, FI_UINT64,
                                      FI_SUM, nullptr);
                 }) &&
           ends("an atomic", ++posted);
    if (!well) {
        close_endpoints();
    }
    return well;
}

bool run_of_all::use_remote_memory()
{
    if (!eps_[0] && !open_pair()) {
        return false;
    }
    memory_.assign(large, 0);
    fid_mr *mr = nullptr;
    if (!works("mr_reg", fi_mr_reg(domain_, memory_.data(), large, FI_REMOTE_READ | FI_REMOTE_WRITE,
                                   0, 1, 0, &mr, nullptr))) {
        return false;
    }
    bool addresses = info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    uint64_t at = addresses ? reinterpret_cast<uintptr_t>(memory_.data()) : 0;
    bool well = access(at, fi_mr_key(mr));
    close(&mr);
    return well;
}

bool run_of_all::await_event(uint32_t wanted, fi_eq_cm_entry *entry)
{
    alignas(fi_eq_cm_entry) char buffer[1024];
    uint32_t type = 0;
    ssize_t n = 0;
    if (!until([&] {
            take_completions();
            n = fi_eq_read(eq_, &type, buffer, sizeof(buffer), 0);
            return n != -FI_EAGAIN;
        })) {
        wrong_ += "event " + std::to_string(wanted) + " does not come; ";
        return false;
    }
    if (n == -FI_EAVAIL) {
        fi_eq_err_entry e = {};
        (void)fi_eq_readerr(eq_, &e, 0);
        return works("connecting", e.err ? -e.err : -FI_EOTHER);
    }
    if (n > 0) {
        memcpy(static_cast<void *>(entry), buffer, sizeof(*entry));
    }
    return works("event", n) && works("another event", type == wanted ? 0 : -FI_EOTHER);
}

bool run_of_all::connect()
{
    close_endpoints();
    sockaddr_in name = {};
    size_t length = sizeof(name);
    fi_eq_cm_entry request = {}, other = {};
    if (!works("passive_ep", fi_passive_ep(fabric_, info_, &pep_, nullptr)) ||
        !works("pep_bind", fi_pep_bind(pep_, &eq_->fid, 0)) || !works("listen", fi_listen(pep_)) ||
        !works("getname", fi_getname(&pep_->fid, &name, &length)) ||
        !open_endpoint(&eps_[0], info_) ||
        !works("connect", fi_connect(eps_[0], &name, nullptr, 0)) ||
        !await_event(FI_CONNREQ, &request)) {
        return false;
    }
    bool well =
        open_endpoint(&eps_[1], request.info) && works("accept", fi_accept(eps_[1], nullptr, 0));
    if (!well) {
        (void)fi_reject(pep_, request.info->handle, nullptr, 0);
    }
    fi_freeinfo(request.info);
    if (!well || !await_event(FI_CONNECTED, &other) || !await_event(FI_CONNECTED, &other)) {
        return false;
    }
    completed_ = 0;
    error_ = 0;
    std::vector<char> out = app::pattern(small, 1), in(small);
    well =
        posts("recv", [&] { return fi_recv(eps_[1], in.data(), small, nullptr, 0, nullptr); }) &&
        posts("send", [&] { return fi_send(eps_[0], out.data(), small, nullptr, 0, nullptr); }) &&
        ends("a message", 2) && works("shutdown", fi_shutdown(eps_[0], 0)) &&
        await_event(FI_SHUTDOWN, &other);
    close_endpoints();
    return well;
}

void run_of_all::close_endpoints()
{
    close(&eps_[0]);
    close(&eps_[1]);
    close(&pep_);
    // Of what ended before: its partner's error has ended the step.
    while (cq_ && take_completions()) {
    }
    char event[1024];
    uint32_t type;
    fi_eq_err_entry e = {};
    for (ssize_t n = 1; eq_ && (n > 0 || n == -FI_EAVAIL);) {
        n = fi_eq_read(eq_, &type, event, sizeof(event), 0);
        if (n == -FI_EAVAIL) {
            (void)fi_eq_readerr(eq_, &e, 0);
        } else if (n > 0 && type == FI_CONNREQ) {
            fi_eq_cm_entry entry;
            memcpy(static_cast<void *>(&entry), event, sizeof(entry));
            fi_freeinfo(entry.info);
        }
    }
}

void run_of_all::close_all()
{
    close_endpoints();
    close(&av_);
    close(&cq_);
    close(&domain_);
    close(&eq_);
    close(&fabric_);
    fi_freeinfo(info_);
    info_ = nullptr;
}

struct over {
    fi_ep_type type;
    const char *transports;
    const char *name;
};

class prov_allocation : public testing::TestWithParam<over> {
  protected:
    void SetUp() override
    {
        if (!own_allocations::can_fail()) {
            GTEST_SKIP() << "the sanitizer has an allocator of its own";
        }
        app::use_build_tree();
        setenv("FI_UCXLIKE_TLS", GetParam().transports, 1);
    }
};

std::string use_everything()
{
    size_t before = open_files();
    std::string wrong = run_of_all(prov_allocation::GetParam().type).wrong();
    size_t after = open_files();
    return after == before ? wrong
                           : wrong + std::to_string(after - before) + " descriptors are left";
}

TEST_P(prov_allocation, fails_once)
{
    // libfabric keeps what it opens when it begins.
    fi_info *first = nullptr;
    ASSERT_EQ(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, nullptr, &first), 0);
    fi_freeinfo(first);
    constexpr size_t step = 61;
    EXPECT_EQ(own_allocations::run_each(step, use_everything), "");
}

INSTANTIATE_TEST_SUITE_P(over, prov_allocation,
                         testing::Values(over{FI_EP_RDM, "\\sm,tcp", "rdm_sm"},
                                         over{FI_EP_RDM, "tcp", "rdm_tcp"},
                                         over{FI_EP_MSG, "\\sm,tcp", "msg_sm"},
                                         over{FI_EP_MSG, "tcp", "msg_tcp"}),
                         [](const auto &info) { return info.param.name; });

} // namespace
