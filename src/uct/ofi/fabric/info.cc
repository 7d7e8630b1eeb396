// SPDX-License-Identifier: BSD-3-Clause
// Discovery of the core providers, cached for the life of the process: the infos are never freed,
// because at exit libfabric may be gone before us.
#include "uct/ofi/fabric/info.h"

#include "ucs/config/environment.h"
#include "uct/ofi/fabric/absences.h"
#include "uct/ofi/fabric/error.h"
#include "uct/ofi/fabric/modules.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <rdma/fi_tagged.h>
#include <span>
#include <string_view>
#include <tuple>

namespace uct::ofi {

namespace {

struct inventory {
    std::vector<core> cores;
    std::map<std::string, std::vector<device>> devices; // by transport
    std::vector<absence> absences;
    std::vector<std::string> providers; // libfabric's names
};

// The name under which UCX users know the device.
std::string device_name(const core &c, const fi_info *info)
{
    return c.on_node() ? "memory" : info->domain_attr->name;
}

bool usable(const core &c, const fi_info *info)
{
    // "a;b" is a layered provider: it can be listed and not opened.
    return info->ep_attr->type == c.ep_type && !strchr(info->fabric_attr->prov_name, ';') &&
           info->domain_attr->name && info->domain_attr->cq_data_size >= 1;
}

// What we would ask any core for. Some keep the order of messages only when they are asked for it.
info_ptr make_hints(uint64_t order)
{
    info_ptr ask(fi_allocinfo());
    if (!ask) {
        throw std::bad_alloc();
    }
    // Completion data may use up a receive: that is how all of our messages travel.
    ask->mode = FI_CONTEXT | FI_CONTEXT2 | FI_RX_CQ_DATA;
    ask->domain_attr->mr_mode =
        FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
    // Each worker has its own endpoints and completion queues and is used by one thread at a
    // time; only the domain is shared.
    ask->domain_attr->threading = FI_THREAD_COMPLETION;
    ask->tx_attr->msg_order = order;
    ask->rx_attr->msg_order = order;
    return ask;
}

// Infos of one device: which serves us better. Order first, because to supply it costs; then what
// saves the layers above work; then IPv4.
bool better(const fi_info *a, const fi_info *b)
{
    auto worth = [](const fi_info *info) {
        return std::make_tuple(keeps_order(info), (info->caps & FI_TAGGED) != 0,
                               (info->caps & FI_ATOMIC) != 0, info->addr_format == FI_SOCKADDR_IN);
    };
    return worth(a) > worth(b);
}

std::vector<device> find_devices(const core &c,
                                 const std::function<void(fi_info *)> &more = nullptr)
{
    auto ask = [&](uint64_t order) {
        info_ptr hints = make_hints(order);
        if (more) {
            more(hints.get());
        }
        return query(c, nullptr, nullptr, 0, hints.get());
    };
    std::vector<device> found;
    info_ptr list = ask(FI_ORDER_SAS);
    if (!list && !c.msg()) {
        list = ask(0);
    }
    fi_info *next = nullptr;
    for (fi_info *info = list.release(); info; info = next) {
        next = info->next;
        info->next = nullptr;
        if (!usable(c, info)) {
            fi_freeinfo(info);
            continue;
        }
        std::string name = device_name(c, info);
        auto same = [&](const device &d) { return d.name == name; };
        auto it = std::find_if(found.begin(), found.end(), same);
        if (it == found.end()) {
            found.push_back({name, {}});
            it = found.end() - 1;
        }
        it->infos.push_back(info);
    }
    for (device &d : found) {
        std::stable_sort(d.infos.begin(), d.infos.end(), better);
    }
    return found;
}

// What libfabric has, by name. No provider is asked, so that this may be called from one.
std::vector<std::string> provider_names()
{
    fi_info *list = nullptr;
    std::vector<std::string> names;
    if (fi_getinfo(api_version, nullptr, nullptr, FI_PROV_ATTR_ONLY, nullptr, &list) == 0) {
        for (const fi_info *info = list; info; info = info->next) {
            names.emplace_back(info->fabric_attr->prov_name);
        }
    }
    fi_freeinfo(list);
    return names;
}

// Not ours, no layer above others, and not what would come back to us: UCX itself, by two names.
bool is_core_name(const std::string &name)
{
    constexpr const char *never[] = {"ucxlike", "ucx", "mlx", "lnx", "coll"};
    return std::none_of(std::begin(never), std::end(never),
                        [&](const char *n) { return name == n; }) &&
           !name.starts_with("ofi_") && !name.starts_with("off_");
}

// A core that is in no table of ours is used if it has what UCT needs: messages to other hosts.
// Their order we supply (sequence.h).
bool serves(const device &d)
{
    const fi_info *info = d.infos.front();
    constexpr uint64_t needed = FI_MSG | FI_SEND | FI_RECV | FI_REMOTE_COMM;
    return (info->caps & needed) == needed;
}

void leave_out(inventory *found, absence a)
{
    ucs_debug("%s of provider %s is not used: %s", a.device.empty() ? "all" : a.device.c_str(),
              a.provider.c_str(), a.why.c_str());
    found->absences.push_back(std::move(a));
}

std::vector<device> serving(inventory *found, const core &c, std::vector<device> all)
{
    auto rest = std::stable_partition(all.begin(), all.end(), serves);
    for (auto d = rest; d != all.end(); ++d) {
        leave_out(found, {c.provider, d->name, "it sends no messages to other hosts"});
        for (const fi_info *info : d->infos) {
            fi_freeinfo(const_cast<fi_info *>(info));
        }
    }
    all.erase(rest, all.end());
    return all;
}

void add(inventory *found, const core &c, std::vector<device> list)
{
    auto same = [&](const absence &a) { return a.provider == c.provider; };
    if (list.empty() && std::none_of(found->absences.begin(), found->absences.end(), same)) {
        const std::vector<std::string> &names = found->providers;
        bool is_here = std::find(names.begin(), names.end(), c.provider) != names.end();
        leave_out(found, {c.provider, "",
                          is_here ? "it has no device here with what the library needs"
                                  : "this libfabric has no such provider"});
    }
    if (!list.empty()) {
        found->cores.push_back(c);
        found->devices[c.transport] = std::move(list);
    }
}

// The connectionless endpoints of every provider that the candidates leave.
void find_others(inventory *found, std::span<const core> candidates)
{
    for (const std::string &name : found->providers) {
        bool known = std::any_of(candidates.begin(), candidates.end(),
                                 [&](const core &c) { return c.provider == name; });
        core c{name.substr(0, 9), name, FI_EP_RDM, medium::fabric};
        if (known || found->devices.contains(c.transport)) {
            continue;
        }
        if (!is_core_name(name)) {
            leave_out(found, {name, "", "it is a layer above other providers, or this library"});
            continue;
        }
        add(found, c, serving(found, c, find_devices(c)));
    }
}

// The provider that the user named for tcp, or "tcp".
std::string tcp_core()
{
    const char *wanted = getenv("UCX_TCP_CORE");
    return wanted && *wanted ? wanted : "tcp";
}

// tcp_rdm: the provider that has the RDM endpoints of xnet.
std::vector<core> candidates(const char *tcp_rdm)
{
    return {{"shm", "shm", FI_EP_RDM, medium::memory},
            {"verbs", "verbs", FI_EP_MSG, medium::verbs},
            {"efa", "efa", FI_EP_RDM, medium::fabric},
            {"cxi", "cxi", FI_EP_RDM, medium::fabric},
            {"opx", "opx", FI_EP_RDM, medium::fabric},
            {"psm3", "psm3", FI_EP_RDM, medium::fabric},
            {"tcp", tcp_core(), FI_EP_MSG, medium::sockets},
            {"tcprdm", tcp_rdm, FI_EP_RDM, medium::sockets}};
}

// The providers that could stand behind tcp.
std::string tcp_cores()
{
    std::string names;
    for (const char *name : {"tcp", "net", "sockets"}) {
        if (query({"tcp", name, FI_EP_MSG, medium::sockets}, nullptr, nullptr, 0, nullptr)) {
            names += (names.empty() ? "" : ", ") + std::string(name);
        }
    }
    return names.empty() ? "none" : names;
}

// Providers that libfabric could not load.
void leave_out_broken(inventory *found)
{
    for (broken_module &m : broken_modules()) {
        ucs::config::note_environment("FI_PROVIDER_PATH: a provider does not load: " + m.why);
        leave_out(found, {std::move(m.file), "", "it does not load: " + m.why});
    }
}

const inventory &find_all()
{
    static const inventory *all = [] {
        auto *found = new inventory;
        found->providers = provider_names();
        bool is_old = FI_VERSION_LT(fi_version(), FI_VERSION(1, 18));
        const std::vector<core> known = candidates(is_old ? "net" : "tcp");
        for (const core &c : known) {
            add(found, c, found->providers.empty() ? std::vector<device>() : find_devices(c));
            if (c.transport == "tcp" && getenv("UCX_TCP_CORE") && !found->providers.empty() &&
                !found->devices.contains("tcp")) {
                ucs::config::note_environment("UCX_TCP_CORE: no such provider with connected "
                                              "endpoints here: " +
                                              c.provider + "; what exists: " + tcp_cores());
            }
        }
        find_others(found, known);
        leave_out_broken(found);
        return found;
    }();
    return *all;
}

} // namespace

bool core::has_wait_fd() const
{
    return msg() || provider == "net";
}

bool core::trywait_does_nothing() const
{
    return provider == "net";
}

bool core::answers_in_order() const
{
    return provider != "sockets";
}

bool core::polled_by_calls() const
{
    return sockets() || provider == "sockets" || provider == "udp";
}

bool core::needs_polling_target() const
{
    // In these the hardware, the kernel or a thread of the provider does it.
    constexpr std::string_view others[] = {"cxi", "efa", "net", "psm3", "shm", "sockets", "tcp"};
    return !msg() && std::find(std::begin(others), std::end(others), provider) == std::end(others);
}

bool core::forgets_handshakes() const
{
    return provider == "tcp";
}

bool core::has_mutable_signal() const
{
    return provider == "tcp";
}

bool core::is_slingshot() const
{
    return provider == "cxi";
}

const char *core::job_variable() const
{
    constexpr struct {
        const char *provider, *variable;
    } all[] = {{"cxi", "SLINGSHOT_VNIS"},
               {"opx", "FI_OPX_UUID"},
               {"psm2", "FI_PSM2_UUID"},
               {"psm3", "FI_PSM3_UUID"}};
    for (const auto &known : all) {
        if (provider == known.provider) {
            return known.variable;
        }
    }
    return nullptr;
}

bool keeps_order(const fi_info *info)
{
    return info->ep_attr->type == FI_EP_MSG ||
           (info->tx_attr->msg_order & info->rx_attr->msg_order & FI_ORDER_SAS) != 0;
}

info_ptr dup_info(const fi_info *info)
{
    info_ptr copy(fi_dupinfo(info));
    if (!copy) {
        throw std::bad_alloc();
    }
    return copy;
}

info_ptr query(const core &c, const char *node, const char *service, uint64_t flags,
               const fi_info *hints)
{
    info_ptr ask = hints ? dup_info(hints) : make_hints(FI_ORDER_SAS);
    // Answers that another query left in the hints would narrow this one.
    for (char **name :
         {&ask->fabric_attr->prov_name, &ask->fabric_attr->name, &ask->domain_attr->name}) {
        free(*name);
        *name = nullptr;
    }
    ask->fabric_attr->prov_name = strdup(c.provider.c_str());
    ask->ep_attr->type = c.ep_type;

    fi_info *list = nullptr;
    int ret = fi_getinfo(api_version, node, service, flags | flag_core_only | flag_hidden,
                         ask.get(), &list);
    if (ret != 0 && ret != -FI_ENODATA) {
        ucs_debug("fi_getinfo for provider %s: %s", c.provider.c_str(), fi_strerror(-ret));
    }
    return info_ptr(ret == 0 ? list : nullptr);
}

info_ptr query_device(const core &c, const std::string &name,
                      const std::function<void(fi_info *)> &more)
{
    info_ptr best;
    for (const device &d : find_devices(c, more)) {
        for (const fi_info *info : d.infos) {
            info_ptr one(const_cast<fi_info *>(info));
            if (!best && d.name == name) {
                best = std::move(one);
            }
        }
    }
    return best;
}

const std::vector<core> &cores()
{
    return find_all().cores;
}

std::vector<std::string> transports()
{
    std::vector<std::string> names;
    for (const core &c : candidates("")) { // their names alone: libfabric is not asked
        names.push_back(c.transport);
    }
    return names;
}

const std::vector<absence> &absences()
{
    return find_all().absences;
}

static std::string text_of_version(uint32_t version)
{
    return std::to_string(FI_MAJOR(version)) + "." + std::to_string(FI_MINOR(version));
}

std::string fabric_version()
{
    return text_of_version(fi_version());
}

std::string fabric_headers()
{
    return text_of_version(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION));
}

const core *find_core(const std::string &transport)
{
    for (const core &c : cores()) {
        if (c.transport == transport) {
            return &c;
        }
    }
    return nullptr;
}

const std::vector<device> &devices(const core &c)
{
    return find_all().devices.at(c.transport);
}

} // namespace uct::ofi
