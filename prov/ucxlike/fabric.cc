// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/fabric.h"

#include "prov/ucxlike/connect/pep.h"
#include "prov/ucxlike/domain.h"
#include "prov/ucxlike/queue/eq.h"
#include "prov/ucxlike/queue/waitset.h"

namespace ucxlike {

int open_fabric(fi_fabric_attr *attr, fid_fabric **out, void *context)
{
    PROV_CHECK_ARG(FABRIC, attr && out, "fi_fabric: attr and fabric must not be NULL\n");
    return guard([&] {
        *out = new fabric(*attr, context);
        return 0;
    });
}

fabric::fabric(const fi_fabric_attr &attr, void *context)
    : fid_fabric(), api_version(attr.api_version)
{
    fid.fclass = FI_CLASS_FABRIC;
    fid.context = context;
    fid.ops = &fid_ops_;
    ops = &ops_;
    if (!api_version) {
        api_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
    }
}

fabric::~fabric()
{
    cm_engine_.reset();
    if (context_) {
        ucp_cleanup(context_);
    }
}

ucp_context_h fabric::context()
{
    std::lock_guard g(mutex_);
    if (!context_) {
        std::string transports = param_string("tls");
        if (param_bool("strict")) {
            insist(transports);
        }
        context_ = start(transports);
    }
    return context_;
}

// Each transport that is named must work by itself.
void fabric::insist(const std::string &transports)
{
    for (size_t at = 0; at < transports.size();) {
        size_t end = std::min(transports.find(',', at), transports.size());
        std::string name = transports.substr(at, end - at);
        at = end + 1;
        if (name.empty() || transports[0] == '^') {
            continue;
        }
        try {
            ucp_cleanup(start(name));
        } catch (const failure &) {
            PROV_WARN(FABRIC,
                      "FI_UCXLIKE_TLS: \"%s\" does not work here, and FI_UCXLIKE_STRICT is "
                      "set\n",
                      name.c_str());
            throw;
        }
    }
}

ucp_context_h fabric::start(const std::string &transports)
{
    ucp_config_t *config;
    ucs_status_t st = ucp_config_read(nullptr, nullptr, &config);
    if (st != UCS_OK) {
        PROV_WARN(FABRIC, "ucp_config_read: %s\n", ucs_status_string(st));
        throw failure{errno_of(st)};
    }
    // What the administrator chose for the provider alone.
    const struct {
        const char *name;
        std::string value;
    } choices[] = {{"TLS", transports},
                   {"NET_DEVICES", param_string("net_devices")},
                   {"STRICT", param_bool("strict") ? "y" : ""}};
    for (auto &c : choices) {
        if (c.value.empty()) {
            continue;
        }
        st = ucp_config_modify(config, c.name, c.value.c_str());
        if (st != UCS_OK) {
            PROV_WARN(FABRIC, "FI_UCXLIKE_%s: \"%s\": %s\n", c.name, c.value.c_str(),
                      ucs_status_string(st));
            ucp_config_release(config);
            throw failure{errno_of(st)};
        }
    }
    ucp_params_t params = {};
    params.field_mask =
        UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    params.mt_workers_shared = 1;
    params.name = "ucxlike-fi";
    ucp_context_h made = nullptr;
    st = ucp_init(&params, config, &made);
    ucp_config_release(config);
    if (st != UCS_OK) {
        PROV_WARN(FABRIC, "ucp_init: %s\n", ucs_status_string(st));
        for (auto &c : choices) {
            if (!c.value.empty()) {
                PROV_WARN(FABRIC, "with FI_UCXLIKE_%s=%s\n", c.name, c.value.c_str());
            }
        }
        throw failure{errno_of(st)};
    }
    return made;
}

engine *fabric::cm_engine()
{
    ucp_context_h c = context();
    std::lock_guard g(mutex_);
    if (!cm_engine_) {
        cm_engine_ = std::make_unique<engine>(c, true, true);
    }
    return cm_engine_.get();
}

int fabric::close(fid_t f)
{
    fabric *self = from_base<fabric, fid_fabric>(f);
    if (self->refs_ > 0) {
        PROV_WARN(FABRIC, "fi_close: the fabric has %d open objects\n", self->refs_.load());
        return -FI_EBUSY;
    }
    delete self;
    return 0;
}

int fabric::open_domain(fid_fabric *f, fi_info *info, fid_domain **out, void *context)
{
    return domain::open(f, info, out, context);
}

int fabric::open_domain2(fid_fabric *f, fi_info *info, fid_domain **out, uint64_t flags,
                         void *context)
{
    return flags ? -FI_ENOSYS : open_domain(f, info, out, context);
}

int fabric::trywait(fid_fabric *, fid_t *fids, int count)
{
    PROV_CHECK_ARG(FABRIC, fids && count >= 0, "fi_trywait: fids must not be NULL\n");
    for (int i = 0; i < count; ++i) {
        int error;
        if (fids[i] && fids[i]->fclass == FI_CLASS_WAIT) {
            error = from_base<wait_set, fid_wait>(fids[i])->trywait();
        } else {
            waitable *w = waitable_of(fids[i]);
            PROV_CHECK_ARG(FABRIC, w, "fi_trywait: fids[%d] is nothing to wait for\n", i);
            error = w->trywait();
        }
        if (error) {
            return error;
        }
    }
    return 0;
}

constinit fi_ops fabric::fid_ops_ = only_close(close);

fi_ops_fabric fabric::ops_ = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = pep::open,
    .eq_open = eq::open,
    .wait_open = wait_set::open,
    .trywait = trywait,
    .domain2 = open_domain2,
};

} // namespace ucxlike
