// SPDX-License-Identifier: BSD-3-Clause
//
// Building a context: which transports and devices the configuration allows, and their memory
// domains.
#include "ucp/core/context.h"

#include "ucp/core/launcher.h"
#include "ucp/core/resources.h"
#include "ucs/config/environment.h"
#include "ucs/error.h"
#include "ucs/stats/stats.h"
#include "ucs/sys.h"
#include "uct/api/components.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <unistd.h>

namespace ucp {

namespace {

// What does not work is left out. When an allocation of ours failed there is no context: another
// call may see it all.
bool works(ucs_status_t status)
{
    if (status == UCS_ERR_NO_MEMORY && ucs::failed_allocations) {
        throw ucs::error(status, "ucp_init: out of memory");
    }
    return status == UCS_OK;
}

// Fills md.cmpt_attr and returns the names of the component's memory domains.
std::vector<std::string> query_component(uct_component_h cmpt, uct_component_attr_t *attr)
{
    memset(attr, 0, sizeof(*attr));
    attr->field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT |
                       UCT_COMPONENT_ATTR_FIELD_FLAGS;
    if (!works(uct_component_query(cmpt, attr))) {
        return {};
    }
    std::vector<uct_md_resource_desc_t> descs(attr->md_resource_count);
    uct_component_attr_t list = {};
    list.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    list.md_resources = descs.data();
    if (descs.empty() || !works(uct_component_query(cmpt, &list))) {
        return {};
    }
    std::vector<std::string> names;
    for (const auto &desc : descs) {
        names.emplace_back(desc.md_name, strnlen(desc.md_name, sizeof(desc.md_name)));
    }
    return names;
}

void apply_overrides(const ucp_context &context, void *uct_config)
{
    for (const auto &[name, value] : context.overrides) {
        (void)works(uct_config_modify(uct_config, name.c_str(), value.c_str()));
    }
}

class builder {
  public:
    explicit builder(ucp_context &context) : context_(context), select_(context.config) {}

    void run()
    {
        ucs::failed_allocations = 0;
        for (uct_component_h cmpt : uct::own_components()) {
            add_component(cmpt);
        }
        context_.networks_are_late = select_.needs_cores() && networks_may_wait();
        if (select_.needs_cores() && !context_.networks_are_late) {
            add_cores();
        }
        report_settings();
        report_missing();
        finish(0);
    }

    // What run() left out.
    void add_networks()
    {
        ucs::failed_allocations = 0;
        const size_t mds = context_.mds.size(), resources = context_.resources.size();
        for (const tl_resource &rsc : context_.resources) {
            (void)select_.allows(rsc); // it was asked for, and is there
        }
        try {
            add_cores();
            report_missing();
            finish(resources);
        } catch (...) {
            context_.resources.resize(resources);
            while (context_.mds.size() > mds) {
                uct_md_close(context_.mds.back().md);
                context_.mds.pop_back();
                context_.regions[context_.mds.size()].reset();
            }
            context_.md_count = static_cast<unsigned>(mds);
            throw;
        }
    }

  private:
    // Not where something of a network was asked for by name, which may be missing.
    bool networks_may_wait() const
    {
        using ucs::config::ternary;
        const config &values = context_.config;
        return values.late_networks != ternary::no && !values.strict &&
               values.rcache_enable != ternary::yes && is_all(values.net_devices) &&
               !context_.mt_workers_shared && !ports_are_chosen(context_) && spare_is_served() &&
               select_.unmatched().empty() &&
               (values.late_networks == ternary::yes || job_is_on_this_node());
    }

    void add_cores()
    {
        for (uct_component_h cmpt : uct::core_components()) {
            add_component(cmpt);
        }
    }

    // Behind the first `in_place` resources, which workers have opened.
    void finish(size_t in_place)
    {
        sort(in_place);
        if (context_.mds.size() > MAX_MDS) {
            keep_best();
        }
        context_.md_count = static_cast<unsigned>(context_.mds.size());
        open_region_caches(&context_);
    }

    void add_component(uct_component_h cmpt)
    {
        md m;
        m.cmpt = cmpt;
        std::vector<std::string> names = query_component(cmpt, &m.cmpt_attr);
        if (!select_.component_listed(m.cmpt_attr.name) ||
            (select_.is_spare(m.cmpt_attr.name) && spare_is_served())) {
            return;
        }
        for (const std::string &name : names) {
            m.name = name;
            add_md(m);
        }
    }

    void add_md(md m)
    {
        uct_md_config_t *md_config = nullptr;
        const ucp::config_source &source = context_.source;
        if (!works(uct_md_config_read(m.cmpt, source.prefix(), source.file(), &md_config))) {
            return;
        }
        std::unique_ptr<void, decltype(&uct_config_release)> held(md_config, uct_config_release);
        apply_overrides(context_, md_config);
        size_t before = context_.resources.size();
        context_.mds.push_back(std::move(m)); // closed with the context
        md &kept = context_.mds.back();
        if (!open(kept, md_config)) {
            context_.resources.resize(before);
            uct_md_close(kept.md);
            context_.mds.pop_back();
        }
    }

    // False: there is no use for it.
    bool open(md &m, const uct_md_config_t *md_config)
    {
        std::string why;
        ucs_status_t status = uct::open_md(m.cmpt, m.name.c_str(), md_config, &m.md, &why);
        if (status != UCS_OK) {
            note_refusal(m, status, why);
            return false;
        }
        return add_resources(m) && works(uct_md_query(m.md, &m.attr));
    }

    // A device that was to be used; what there is beside it serves.
    void note_refusal(const md &m, ucs_status_t status, const std::string &why)
    {
        tl_resource rsc;
        const std::string name = m.cmpt_attr.name;
        bool on_node = name == "shm" || name == "sm";
        name.copy(rsc.desc.tl_name, sizeof(rsc.desc.tl_name) - 1);
        m.name.copy(rsc.desc.dev_name, sizeof(rsc.desc.dev_name) - 1);
        rsc.desc.dev_type = on_node ? UCT_DEVICE_TYPE_SHM : UCT_DEVICE_TYPE_NET;
        rsc.cls = classify(rsc.desc);
        (void)works(status);
        if (select_.allows(rsc)) {
            refusals_.push_back(name + " is not used on " + m.name + ": " + why);
        }
    }

    // Of the last memory domain. False: it has none.
    bool add_resources(const md &m)
    {
        uct_tl_resource_desc_t *descs = nullptr;
        unsigned count = 0;
        if (!works(uct_md_query_tl_resources(m.md, &descs, &count))) {
            return false;
        }
        size_t before = context_.resources.size();
        std::unique_ptr<uct_tl_resource_desc_t, decltype(&uct_release_tl_resource_list)> held(
            descs, uct_release_tl_resource_list);
        for (unsigned i = 0; i < count && context_.mds.size() <= UINT8_MAX; ++i) {
            tl_resource rsc;
            rsc.desc = descs[i];
            rsc.md_index = static_cast<uint8_t>(context_.mds.size() - 1);
            rsc.cls = classify(descs[i]);
            rsc.extra_rail = reaches_beyond(rsc.desc.dev_name);
            if (select_.allows(rsc)) {
                context_.resources.push_back(rsc);
            }
        }
        return context_.resources.size() > before;
    }

    // The component that serves in its place comes before it.
    bool spare_is_served() const
    {
        return std::any_of(context_.resources.begin(), context_.resources.end(),
                           selection::stands_in_for_spare);
    }

    // Those of a device would not be atomic to those of processors over shared memory.
    void report_atomics(bool strict) const
    {
        if (context_.config.atomics != atomic_mode::device ||
            !context_.has_feature(UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64)) {
            return;
        }
        const char *text = "UCX_ATOMIC_MODE=device: processors execute atomic operations";
        if (strict) {
            throw ucs::error(UCS_ERR_UNSUPPORTED, "ucp_init: %s (UCX_STRICT)", text);
        }
        ucs_warn("%s", text);
    }

    void report_settings() const
    {
        (void)ucs::stats::wanted(); // knows its variables, and refuses bad values
        ucs::config::report_environment(context_.config.strict);
        report_atomics(context_.config.strict);
    }

    // What was asked for and is not here, or refuses us.
    void report_missing() const
    {
        bool strict = context_.config.strict;
        std::vector<std::string> texts = select_.unmatched();
        texts.insert(texts.end(), refusals_.begin(), refusals_.end());
        for (const std::string &text : texts) {
            if (strict) {
                throw ucs::error(UCS_ERR_NO_DEVICE, "ucp_init: %s (UCX_STRICT)", text.c_str());
            }
            ucs_warn("%s", text.c_str());
        }
    }

    void sort(size_t in_place)
    {
        std::string route = default_route_device();
        std::stable_sort(context_.resources.begin() + static_cast<std::ptrdiff_t>(in_place),
                         context_.resources.end(), [&](const tl_resource &a, const tl_resource &b) {
                             return better(rank_of(a, route), rank_of(b, route));
                         });
    }

    // An md has a bit in the maps of keys. The best one of each component has the first place, then
    // come those of the best resources, which are sorted.
    void keep_best()
    {
        std::vector<uint8_t> kept;
        auto keep = [&](uint8_t md) {
            if (kept.size() < MAX_MDS && std::find(kept.begin(), kept.end(), md) == kept.end()) {
                kept.push_back(md);
            }
        };
        std::set<uct_component_h> served;
        for (const tl_resource &rsc : context_.resources) {
            if (served.insert(context_.mds[rsc.md_index].cmpt).second) {
                keep(rsc.md_index);
            }
        }
        for (const tl_resource &rsc : context_.resources) {
            keep(rsc.md_index);
        }
        std::sort(kept.begin(), kept.end());
        leave_out_others(kept);
    }

    void leave_out_others(const std::vector<uint8_t> &kept)
    {
        std::vector<md> mds;
        for (size_t i = 0; i < context_.mds.size(); ++i) {
            const md &m = context_.mds[i];
            if (std::binary_search(kept.begin(), kept.end(), i)) {
                mds.push_back(m);
            } else {
                ucs_info("%s of %s is not used: %u memory domains are nearer", m.name.c_str(),
                         m.cmpt_attr.name, MAX_MDS);
                uct_md_close(m.md);
            }
        }
        context_.mds = std::move(mds);
        auto place = [&](uint8_t md) { return std::lower_bound(kept.begin(), kept.end(), md); };
        std::erase_if(context_.resources, [&](const tl_resource &rsc) {
            auto at = place(rsc.md_index);
            return at == kept.end() || *at != rsc.md_index;
        });
        for (tl_resource &rsc : context_.resources) {
            rsc.md_index = static_cast<uint8_t>(place(rsc.md_index) - kept.begin());
        }
    }

    ucp_context &context_;
    selection select_;
    std::vector<std::string> refusals_; // a sentence each
};

template <class T>
T value_or(const ucp_params_t *params, uint64_t bit, T ucp_params_t::*member, T otherwise)
{
    return params->field_mask & bit ? params->*member : otherwise;
}

std::string default_context_name()
{
    static std::atomic<unsigned> next{0};
    return "ucp_context_" + std::to_string(next++);
}

} // namespace

} // namespace ucp

ucp_context::ucp_context(const ucp_params_t *params, const ucp_config_t *from)
    : config(from->values), source(from->source),
      features(
          ucp::value_or(params, UCP_PARAM_FIELD_FEATURES, &ucp_params_t::features, uint64_t(0))),
      request_size(ucp::value_or(params, UCP_PARAM_FIELD_REQUEST_SIZE, &ucp_params_t::request_size,
                                 size_t(0))),
      tag_sender_mask(ucp::value_or(params, UCP_PARAM_FIELD_TAG_SENDER_MASK,
                                    &ucp_params_t::tag_sender_mask, uint64_t(0))),
      mt_workers_shared(ucp::value_or(params, UCP_PARAM_FIELD_MT_WORKERS_SHARED,
                                      &ucp_params_t::mt_workers_shared, 0) != 0),
      est_num_eps(ucp::value_or(params, UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
                                &ucp_params_t::estimated_num_eps, size_t(1))),
      est_num_ppn(ucp::value_or(params, UCP_PARAM_FIELD_ESTIMATED_NUM_PPN,
                                &ucp_params_t::estimated_num_ppn, size_t(1))),
      lock(true)
{
    if (has_feature(UCP_FEATURE_DEVICE)) {
        throw ucs::error(UCS_ERR_UNSUPPORTED,
                         "ucp_init: params->features has UCP_FEATURE_DEVICE, and there is no "
                         "device interface");
    }
    if (params->field_mask & UCP_PARAM_FIELD_REQUEST_INIT) {
        request_init = params->request_init;
    }
    if (params->field_mask & UCP_PARAM_FIELD_REQUEST_CLEANUP) {
        request_cleanup = params->request_cleanup;
    }
    name = params->field_mask & UCP_PARAM_FIELD_NAME && params->name
               ? std::string(params->name, strnlen(params->name, UCP_ENTITY_NAME_MAX - 1))
               : ucp::default_context_name();
    overrides = from->overrides;

    try {
        ucp::builder(*this).run();
    } catch (...) {
        release();
        throw;
    }
    if (resources.empty()) {
        release();
        throw ucs::error(UCS_ERR_NO_DEVICE,
                         "ucp_init: no usable transport or device (UCX_TLS, UCX_NET_DEVICES)");
    }
}

void ucp_context::open_networks()
{
    if (networks_are_late) {
        ucs_info("context %s opens its networks", name.c_str());
        ucp::builder(*this).add_networks();
        networks_are_late = false;
    }
}

ucp_context::~ucp_context()
{
    if (worker_count != 0) {
        ucs_warn("ucp_cleanup: %u workers of context %s still exist", worker_count.load(),
                 name.c_str());
    }
    release();
}

void ucp_context::release() noexcept
{
    for (auto &r : regions) {
        r.reset();
    }
    for (ucp::md &m : mds) {
        uct_md_close(m.md);
    }
    mds.clear();
}

std::vector<uct_component_h> ucp_context::connection_managers() const
{
    std::vector<uct_component_h> found;
    ucp::selection select(config);
    for (uct_component_h cmpt : uct::core_components()) {
        uct_component_attr_t attr = {};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME | UCT_COMPONENT_ATTR_FIELD_FLAGS;
        if (uct_component_query(cmpt, &attr) == UCS_OK && attr.flags & UCT_COMPONENT_FLAG_CM &&
            select.component_listed(attr.name)) {
            bool first = strcmp(attr.name, "tcp") == 0;
            found.insert(first ? found.begin() : found.end(), cmpt);
        }
    }
    return found;
}

bool ucp_context::default_open(const ucp::tl_resource &rsc) const noexcept
{
    if (!ucp::is_all(config.net_devices)) {
        return true;
    }
    // Of fabric devices the nearest, which sort() put first, as many as an operation can use.
    if (rsc.cls == ucp::tl_class::rdma) {
        unsigned nearer = 0;
        for (const ucp::tl_resource *other = resources.data(); other != &rsc; ++other) {
            nearer += strcmp(other->desc.tl_name, rsc.desc.tl_name) == 0;
        }
        return nearer < ucp::most_rails(config);
    }
    if (rsc.cls != ucp::tl_class::net) {
        return true;
    }
    // Of plain network interfaces the best one, which sort() put first, and what reaches beyond
    // this host as it does.
    for (const ucp::tl_resource &other : resources) {
        if (other.cls == ucp::tl_class::net && strcmp(other.desc.tl_name, rsc.desc.tl_name) == 0) {
            return &other == &rsc || rsc.extra_rail;
        }
    }
    return true;
}
