// SPDX-License-Identifier: BSD-3-Clause
#include "fabtests-ext/common/fabric_app.h"

#include "fabtests-ext/common/pattern.h"
#include "prov/ucxlike/retired.h"

#include <arpa/inet.h>
#include <csignal>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace app {

void partner::tell(const void *data, size_t length)
{
    auto *at = static_cast<const char *>(data);
    while (length) {
        ssize_t n = send(fd_, at, length, MSG_NOSIGNAL);
        if (n <= 0) {
            fprintf(stderr, "the other role is gone\n");
            _exit(2);
        }
        at += n;
        length -= static_cast<size_t>(n);
    }
}

void partner::hear(void *data, size_t length)
{
    auto *at = static_cast<char *>(data);
    while (length) {
        ssize_t n = recv(fd_, at, length, 0);
        if (n <= 0) {
            fprintf(stderr, "the other role is gone\n");
            _exit(2);
        }
        at += n;
        length -= static_cast<size_t>(n);
    }
}

bool partner::told(int milliseconds) const
{
    pollfd p = {.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&p, 1, milliseconds) > 0;
}

void use_build_tree()
{
    if (const char *build = getenv("top_builddir")) {
        setenv("FI_PROVIDER_PATH", (std::string(build) + "/.libs").c_str(), 0);
    }
    setenv("IPATH_NO_BACKTRACE", "1", 1);
}

std::string run_pair(const role &server, const role &client, int seconds)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
        return "socketpair";
    }
    pid_t pids[2];
    const role *roles[2] = {&server, &client};
    fflush(nullptr);
    for (int i = 0; i < 2; ++i) {
        pids[i] = fork();
        if (pids[i] == 0) {
            close(fds[1 - i]);
            use_build_tree();
            alarm(static_cast<unsigned>(seconds));
            partner p(fds[i]);
            (*roles[i])(p);
            fflush(nullptr);
            _exit(0);
        }
    }
    close(fds[0]);
    close(fds[1]);
    std::string result;
    for (int i = 0; i < 2; ++i) {
        int status = 0;
        waitpid(pids[i], &status, 0);
        const char *name = i ? "client" : "server";
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
            result += std::string(name) + " hangs; ";
        } else if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
            result +=
                std::string(name) + " died of signal " + std::to_string(WTERMSIG(status)) + "; ";
        } else if (WIFEXITED(status) && WEXITSTATUS(status)) {
            result += std::string(name) + " failed; ";
        }
    }
    return result;
}

std::string run_crew(int count, const crew_role &each, int seconds)
{
    size_t size = crew::points * sizeof(std::atomic<int>);
    void *shared = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        return "mmap";
    }
    auto *arrived = new (shared) std::atomic<int>[crew::points]();
    std::vector<pid_t> pids;
    fflush(nullptr);
    for (int i = 0; i < count; ++i) {
        pid_t pid = fork();
        if (pid == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            use_build_tree();
            alarm(static_cast<unsigned>(seconds));
            crew c(arrived);
            each(i, c);
            fflush(nullptr);
            _exit(0);
        }
        pids.push_back(pid);
    }
    std::string result;
    for (int i = 0; i < count; ++i) {
        int status = 0;
        waitpid(pids[static_cast<size_t>(i)], &status, 0);
        if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL) {
            result += "member " + std::to_string(i) + " ended by signal " +
                      std::to_string(WTERMSIG(status)) + "; ";
        } else if (WIFEXITED(status) && WEXITSTATUS(status)) {
            result += "member " + std::to_string(i) + " failed; ";
        }
    }
    munmap(shared, size);
    return result;
}

fabric_side::fabric_side(const options &o) : opt(o)
{
    hints_ = fi_allocinfo();
    REQUIRE(hints_);
    hints_->caps = o.caps;
    hints_->mode = FI_CONTEXT | FI_CONTEXT2;
    hints_->ep_attr->type = o.type;
    hints_->domain_attr->threading = o.threading;
    hints_->domain_attr->mr_mode = o.mr_mode;
    hints_->domain_attr->control_progress = o.progress;
    hints_->domain_attr->data_progress = o.progress;
    hints_->tx_attr->op_flags = o.tx_op_flags;
    hints_->rx_attr->op_flags = o.rx_op_flags;
    hints_->fabric_attr->prov_name = strdup(o.provider);
    bool named = !o.node.empty() && strcmp(o.provider, "shm") != 0;
    REQUIRE_EQ(fi_getinfo(FI_VERSION(1, 17), named ? o.node.c_str() : nullptr,
                          o.service.empty() ? nullptr : o.service.c_str(), named ? FI_SOURCE : 0,
                          hints_, &info),
               0);
    REQUIRE_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
    if (o.type == FI_EP_MSG || o.with_eq) {
        fi_eq_attr a = {};
        a.wait_obj = o.eq_wait;
        REQUIRE_EQ(fi_eq_open(fabric, &a, &eq, nullptr), 0);
    }
    REQUIRE_EQ(fi_domain(fabric, info, &domain, nullptr), 0);
    fi_cq_attr a = {};
    a.format = o.format;
    a.wait_obj = o.wait;
    a.size = o.cq_size;
    REQUIRE_EQ(fi_cq_open(domain, &a, &txcq, nullptr), 0);
    REQUIRE_EQ(fi_cq_open(domain, &a, &rxcq, nullptr), 0);
    if (o.type == FI_EP_RDM) {
        fi_av_attr v = {};
        v.type = FI_AV_TABLE;
        REQUIRE_EQ(fi_av_open(domain, &v, &av, nullptr), 0);
    }
}

fabric_side::~fabric_side()
{
    close_active();
    hide();
    for (fid_cntr *c : cntrs_) {
        REQUIRE_EQ(fi_close(&c->fid), 0);
    }
    fid *rest[] = {pep ? &pep->fid : nullptr,
                   av ? &av->fid : nullptr,
                   &txcq->fid,
                   &rxcq->fid,
                   &domain->fid,
                   eq ? &eq->fid : nullptr,
                   &fabric->fid};
    for (fid *f : rest) {
        if (f) {
            REQUIRE_EQ(fi_close(f), 0);
        }
    }
    fi_freeinfo(info);
    fi_freeinfo(hints_);
}

void fabric_side::close_active()
{
    if (ep) {
        REQUIRE_EQ(fi_close(&ep->fid), 0);
    }
    ep = nullptr;
}

void fabric_side::bind_and_enable()
{
    REQUIRE_EQ(fi_ep_bind(ep, &txcq->fid, opt.tx_bind), 0);
    REQUIRE_EQ(fi_ep_bind(ep, &rxcq->fid, opt.rx_bind), 0);
    if (eq) {
        REQUIRE_EQ(fi_ep_bind(ep, &eq->fid, 0), 0);
    }
    if (av) {
        REQUIRE_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
    }
    if (opt.before_enable) {
        opt.before_enable(*this);
    }
    REQUIRE_EQ(fi_enable(ep), 0);
}

remote fabric_side::expose(void *buffer, size_t length, uint64_t access, uint64_t requested_key)
{
    fid_mr *mr = nullptr;
    REQUIRE_EQ(fi_mr_reg(domain, buffer, length, access, 0, requested_key, 0, &mr, nullptr), 0);
    mrs_.push_back(mr);
    bool addresses = info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | ucxlike::retired::mr_basic);
    return {addresses ? reinterpret_cast<uintptr_t>(buffer) : 0, fi_mr_key(mr)};
}

void fabric_side::hide()
{
    for (fid_mr *m : mrs_) {
        REQUIRE_EQ(fi_close(&m->fid), 0);
    }
    mrs_.clear();
}

fid_cntr *fabric_side::counter(fi_wait_obj wait)
{
    fi_cntr_attr a = {};
    a.wait_obj = wait;
    fid_cntr *c = nullptr;
    REQUIRE_EQ(fi_cntr_open(domain, &a, &c, nullptr), 0);
    cntrs_.push_back(c);
    return c;
}

fid_cntr *fabric_side::counter_of(uint64_t operations, fi_wait_obj wait)
{
    fid_cntr *c = counter(wait);
    REQUIRE_EQ(fi_ep_bind(ep, &c->fid, operations), 0);
    return c;
}

uint64_t fabric_side::serve_until_told(partner &p)
{
    while (!p.told()) {
        progress();
    }
    progress(); // a thread of the provider's may have served: from here on it is seen to be done
    return p.hear();
}

void fabric_side::open_active(fi_info *i)
{
    REQUIRE_EQ(fi_endpoint(domain, i, &ep, nullptr), 0);
    bind_and_enable();
}

void fabric_side::open_rdm(partner &p)
{
    open_active(info);
    char name[256] = {};
    size_t length = sizeof(name);
    REQUIRE_EQ(fi_getname(&ep->fid, name, &length), 0);
    p.tell(name, sizeof(name));
    p.hear(name, sizeof(name));
    REQUIRE_EQ(fi_av_insert(av, name, 1, &peer, 0, nullptr), 1);
}

sockaddr_in name_of(fid *f)
{
    sockaddr_in name = {};
    size_t length = sizeof(name);
    REQUIRE_EQ(fi_getname(f, &name, &length), 0);
    REQUIRE_EQ(length, sizeof(name));
    return name;
}

sockaddr_in fabric_side::listen()
{
    REQUIRE_EQ(fi_passive_ep(fabric, info, &pep, nullptr), 0);
    REQUIRE_EQ(fi_pep_bind(pep, &eq->fid, 0), 0);
    REQUIRE_EQ(fi_listen(pep), 0);
    sockaddr_in name = name_of(&pep->fid);
    REQUIRE(name.sin_port != 0);
    return name;
}

void fabric_side::listen(partner &p)
{
    sockaddr_in name = listen();
    p.tell(&name, sizeof(name));
}

fi_info *fabric_side::await_request(void *param, size_t *length)
{
    fi_eq_cm_entry entry = {};
    std::string bytes;
    REQUIRE_EQ(event(&entry, &bytes, nullptr), static_cast<uint32_t>(FI_CONNREQ));
    REQUIRE(entry.fid == &pep->fid && entry.info && entry.info->handle);
    if (length) {
        memcpy(param, bytes.data(), bytes.size());
        *length = bytes.size();
    }
    return entry.info;
}

void fabric_side::serve(partner &p, const void *param, size_t length)
{
    listen(p);
    fi_info *request = await_request();
    open_active(request);
    fi_freeinfo(request);
    REQUIRE_EQ(fi_accept(ep, param, length), 0);
    expect_event(FI_CONNECTED);
}

void fabric_side::dial(partner &p, const void *param, size_t length)
{
    sockaddr_in name;
    p.hear(&name, sizeof(name));
    open_active(info);
    REQUIRE_EQ(fi_connect(ep, &name, param, length), 0);
    expect_event(FI_CONNECTED);
}

fi_cq_tagged_entry fabric_side::complete(fid_cq *q, fi_cq_err_entry *error, fi_addr_t *source)
{
    auto end = std::chrono::steady_clock::now() + patience;
    fi_cq_tagged_entry entry = {};
    fi_addr_t from = FI_ADDR_NOTAVAIL;
    for (;;) {
        ssize_t n = fi_cq_readfrom(q, &entry, 1, &from);
        if (n == 1) {
            break;
        }
        if (n == -FI_EAVAIL) {
            fi_cq_err_entry e = {};
            REQUIRE_EQ(fi_cq_readerr(q, &e, 0), 1);
            if (!error) {
                fprintf(stderr, "unexpected error completion: %s\n", fi_strerror(e.err));
                _exit(1);
            }
            *error = e;
            return entry;
        }
        REQUIRE_EQ(n, -FI_EAGAIN);
        REQUIRE(std::chrono::steady_clock::now() < end);
        sched_yield();
    }
    if (source) {
        *source = from;
    }
    return entry;
}

bool fabric_side::try_complete(fid_cq *q, fi_cq_tagged_entry *entry, int milliseconds)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
    do {
        ssize_t n = fi_cq_read(q, entry, 1);
        if (n == 1) {
            return true;
        }
        REQUIRE_EQ(n, -FI_EAGAIN);
        sched_yield();
    } while (std::chrono::steady_clock::now() < end);
    return false;
}

uint32_t fabric_side::event(fi_eq_cm_entry *entry, std::string *bytes, fi_eq_err_entry *error,
                            int milliseconds)
{
    alignas(fi_eq_cm_entry) char buffer[4096];
    uint32_t type = 0;
    ssize_t n = fi_eq_sread(eq, &type, buffer, sizeof(buffer), milliseconds, 0);
    if (n == -FI_EAVAIL) {
        fi_eq_err_entry e = {};
        REQUIRE_EQ(fi_eq_readerr(eq, &e, 0), static_cast<ssize_t>(sizeof(e)));
        if (!error) {
            fprintf(stderr, "unexpected error event: %s\n", fi_strerror(e.err));
            _exit(1);
        }
        *error = e;
        if (bytes) {
            bytes->assign(static_cast<const char *>(e.err_data), e.err_data_size);
        }
        return 0;
    }
    if (n < 0) {
        fprintf(stderr, "no event: %s\n", fi_strerror(static_cast<int>(-n)));
        _exit(1);
    }
    memcpy(static_cast<void *>(entry), buffer, sizeof(*entry));
    if (bytes) {
        bytes->assign(buffer + sizeof(fi_eq_cm_entry),
                      static_cast<size_t>(n) - sizeof(fi_eq_cm_entry));
    }
    return type;
}

void fabric_side::expect_event(uint32_t type)
{
    fi_eq_cm_entry entry = {};
    REQUIRE_EQ(event(&entry, nullptr, nullptr), type);
    REQUIRE(entry.fid == &ep->fid);
}

fid_t fabric_side::expect_error(int code, std::string *bytes)
{
    fi_eq_cm_entry entry = {};
    fi_eq_err_entry error = {};
    REQUIRE_EQ(event(&entry, bytes, &error), 0);
    REQUIRE_EQ(error.err, code);
    return error.fid;
}

bool fabric_side::no_event(int milliseconds)
{
    char buffer[4096];
    uint32_t type = 0;
    return fi_eq_sread(eq, &type, buffer, sizeof(buffer), milliseconds, 0) == -FI_EAGAIN;
}

sockaddr_in group_address()
{
    static const in_port_t port = static_cast<in_port_t>(20000 + getpid() % 30000);
    sockaddr_in a = {};
    a.sin_family = AF_INET;
    a.sin_port = htons(port);
    inet_pton(AF_INET, "239.255.71.9", &a.sin_addr);
    return a;
}

std::vector<char> pattern(size_t length, unsigned seed)
{
    std::vector<char> v(length);
    fill_pattern(v.data(), length, seed);
    return v;
}

} // namespace app
