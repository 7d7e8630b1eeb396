// SPDX-License-Identifier: BSD-3-Clause
// What both modes share, and the choice between them.
#include "uct/sockaddr/iface.h"

#include "uct/base/component.h"
#include "uct/sockaddr/client.h"
#include "uct/sockaddr/server.h"

#include <utility>

namespace uct::sockaddr_mode {

void calls::put(std::function<void()> call)
{
    std::lock_guard guard(mutex_);
    waiting_.push_back(std::move(call));
    owner_.defer(run_next, this);
}

void calls::drop()
{
    std::lock_guard guard(mutex_);
    owner_.cancel_deferred(this);
    waiting_.clear();
}

// One deferral for each call: the object may be gone when the call returns.
void calls::run_next(void *arg)
{
    auto &self = *static_cast<calls *>(arg);
    std::function<void()> call;
    {
        std::lock_guard guard(self.mutex_);
        if (self.waiting_.empty()) {
            return;
        }
        call = std::move(self.waiting_.front());
        self.waiting_.pop_front();
    }
    call();
}

iface::iface(const uct_iface_ops_t &table, uct_worker &worker, uct_md &domain,
             const uct_iface_params_t &params)
    : uct::iface(table, worker, domain, params), later_(owner),
      errors_anywhere_((params.field_mask & UCT_IFACE_PARAM_FIELD_ERR_HANDLER_FLAGS) &&
                       (params.err_handler_flags & UCT_CB_FLAG_ASYNC))
{
    auto config = read_config<uct_cm_config>(domain.component.name + "_CM", nullptr, nullptr);
    cm_.reset(domain.component.open_cm(&worker, *config));
}

ucs_status_t iface::query(uct_iface_attr_t *attr)
{
    memset(attr, 0, offsetof(uct_iface_attr_t, dev_num_paths) + sizeof(attr->dev_num_paths));
    attr->cap.flags = UCT_IFACE_FLAG_CONNECT_TO_SOCKADDR | UCT_IFACE_FLAG_CB_SYNC |
                      UCT_IFACE_FLAG_CB_ASYNC | UCT_IFACE_FLAG_ERRHANDLE_PEER_FAILURE |
                      UCT_IFACE_FLAG_EP_CHECK;
    uct_cm_attr_t about{};
    about.field_mask = UCT_CM_ATTR_FIELD_MAX_CONN_PRIV;
    cm_->query(&about);
    attr->max_conn_priv = about.max_conn_priv;
    attr->listen_sockaddr = listening_;
    attr->max_num_eps = SIZE_MAX;
    attr->dev_num_paths = 1;
    return UCS_OK;
}

uct_iface *open(uct_md &md, uct_worker &worker, const uct_iface_params_t &params)
{
    if (!(md.component.flags() & UCT_COMPONENT_FLAG_CM)) {
        throw ucs::error(UCS_ERR_UNSUPPORTED,
                         "uct_iface_open: params->open_mode 0x%lx: component %s has no connections "
                         "by address",
                         params.open_mode, md.component.name.c_str());
    }
    if (params.open_mode & UCT_IFACE_OPEN_MODE_SOCKADDR_SERVER) {
        return new server(md, worker, params);
    }
    return new client(md, worker, params);
}

bool is_sockaddr_iface(const uct_iface *iface)
{
    return iface->ops.ep_create == client_table().ep_create ||
           iface->ops.ep_create == server_table().ep_create;
}

} // namespace uct::sockaddr_mode
