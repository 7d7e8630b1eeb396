// SPDX-License-Identifier: BSD-3-Clause
// Finds the owner of a connected endpoint by the fid that an event names. A fid is compared, never
// followed: an event may name an endpoint that was closed before the event was read. An endpoint is
// in the index exactly as long as it is open, and the cores remove the events of an endpoint that
// is closed, so that the next endpoint at the same address does not get them.
#pragma once

#include "uct/ofi/fabric/fid.h"

#include <functional>
#include <unordered_map>
#include <utility>

namespace uct::ofi {

template <class Owner, class Equal = std::equal_to<const fid *>>
class endpoint_index {
  public:
    // An open endpoint that the index knows. It is closed and removed together. The index outlives
    // it.
    class entry {
      public:
        entry() = default;
        // Throws bad_alloc.
        entry(endpoint_index &index, Owner *owner, fid_ptr<fid_ep> endpoint)
            : index_(&index), endpoint_(std::move(endpoint))
        {
            index.owners_[&endpoint_->fid] = owner;
        }
        entry(entry &&other) noexcept = default;
        entry &operator=(entry &&other) noexcept
        {
            reset();
            index_ = other.index_;
            endpoint_ = std::move(other.endpoint_);
            return *this;
        }
        ~entry() { reset(); }

        void reset() noexcept
        {
            if (endpoint_) {
                index_->owners_.erase(&endpoint_->fid);
                endpoint_.reset();
            }
        }

        fid_ep *get() const { return endpoint_.get(); }
        explicit operator bool() const { return static_cast<bool>(endpoint_); }

      private:
        endpoint_index *index_ = nullptr;
        fid_ptr<fid_ep> endpoint_;
    };

    endpoint_index() = default;
    endpoint_index(const endpoint_index &) = delete;
    endpoint_index &operator=(const endpoint_index &) = delete;

    // nullptr: no open endpoint has this fid.
    Owner *find(const fid *endpoint) const
    {
        auto found = owners_.find(endpoint);
        return found == owners_.end() ? nullptr : found->second;
    }

  private:
    std::unordered_map<const fid *, Owner *, std::hash<const fid *>, Equal> owners_;
};

} // namespace uct::ofi
