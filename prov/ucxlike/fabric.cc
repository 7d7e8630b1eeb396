// SPDX-License-Identifier: BSD-3-Clause
#include "fabric.h"

#include "cntr.h"
#include "cq.h"
#include "domain.h"
#include "eq.h"
#include "pep.h"

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
    if (!api_version)
        api_version = FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION);
}

fabric::~fabric()
{
    cm_engine_.reset();
    if (context_)
        ucp_cleanup(context_);
}

ucp_context_h fabric::context()
{
    std::lock_guard g(mutex_);
    if (context_)
        return context_;
    ucp_config_t *config;
    ucs_status_t st = ucp_config_read(nullptr, nullptr, &config);
    if (st != UCS_OK) {
        PROV_WARN(FABRIC, "ucp_config_read: %s\n", ucs_status_string(st));
        throw failure{errno_of(st)};
    }
    // What the administrator chose for the provider alone.
    static constexpr struct {
        const char *param;
        const char *name;
    } choices[] = {{"tls", "TLS"}, {"net_devices", "NET_DEVICES"}};
    for (auto &c : choices) {
        std::string value = param_string(c.param);
        if (value.empty())
            continue;
        st = ucp_config_modify(config, c.name, value.c_str());
        if (st != UCS_OK) {
            PROV_WARN(FABRIC, "FI_UCXLIKE_%s: \"%s\": %s\n", c.name, value.c_str(),
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
    st = ucp_init(&params, config, &context_);
    ucp_config_release(config);
    if (st != UCS_OK) {
        context_ = nullptr;
        PROV_WARN(FABRIC, "ucp_init: %s\n", ucs_status_string(st));
        throw failure{errno_of(st)};
    }
    return context_;
}

engine *fabric::cm_engine()
{
    ucp_context_h c = context();
    std::lock_guard g(mutex_);
    if (!cm_engine_)
        cm_engine_ = std::make_unique<engine>(c, true);
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
        switch (fids[i]->fclass) {
        case FI_CLASS_CQ:
            error = guard([&] { return from_base<cq, fid_cq>(fids[i])->trywait(); });
            break;
        case FI_CLASS_EQ:
            error = guard([&] { return from_base<eq, fid_eq>(fids[i])->trywait(); });
            break;
        case FI_CLASS_CNTR:
            error = guard([&] { return from_base<cntr, fid_cntr>(fids[i])->trywait(); });
            break;
        default:
            PROV_CHECK_ARG(FABRIC, false, "fi_trywait: fids[%d] is of class %zu\n", i,
                           fids[i]->fclass);
        }
        if (error)
            return error;
    }
    return 0;
}

fi_ops fabric::fid_ops_ = {
    .size = sizeof(fi_ops),
    .close = close,
    .bind = no_op,
    .control = no_op,
    .ops_open = no_op,
    .tostr = no_op,
    .ops_set = no_op,
};

fi_ops_fabric fabric::ops_ = {
    .size = sizeof(fi_ops_fabric),
    .domain = open_domain,
    .passive_ep = pep::open,
    .eq_open = eq::open,
    .wait_open = no_op,
    .trywait = trywait,
    .domain2 = open_domain2,
};

} // namespace ucxlike
