// SPDX-License-Identifier: BSD-3-Clause
//
// The active messages that a worker receives under a schedule (ucp_model.h): each that was sent
// comes once, with its bytes, whichever way the handler takes them.
#pragma once

#include "fabtests-ext/common/require.h"
#include "fabtests-ext/common/schedule.h"
#include "fabtests-ext/common/ucp_pair.h"

#include <atomic>
#include <list>
#include <mutex>
#include <set>

namespace ucp_model {

using namespace ucp_test;

// In front of the bytes.
struct am_header {
    uint32_t length, seed; // a seed names one message
};

class active_messages {
  public:
    active_messages(ucp_worker_h worker, unsigned id) : worker_(worker)
    {
        auto on_message = [](void *arg, const void *header, size_t header_length, void *data,
                             size_t length, const ucp_am_recv_param_t *param) {
            am_header h;
            REQUIRE(header_length == sizeof(h));
            memcpy(&h, header, sizeof(h));
            REQUIRE(length == h.length);
            return static_cast<active_messages *>(arg)->on_message(h, data, param->recv_attr);
        };
        REQUIRE(set_am_handler(worker, id, on_message, this) == UCS_OK);
    }
    active_messages(const active_messages &) = delete;

    void expect(const am_header &h)
    {
        std::lock_guard guard(mutex_);
        REQUIRE(expected_.insert(h.seed).second);
    }
    bool all_came() const
    {
        std::lock_guard guard(mutex_);
        return expected_.empty() && arriving_.empty();
    }

    void sweep()
    {
        std::list<arriving> over;
        {
            std::lock_guard guard(mutex_);
            for (auto at = arriving_.begin(); at != arriving_.end();) {
                auto next = std::next(at);
                if (at->over) {
                    has_come(at->h, at->kept ? at->kept : at->data.data());
                    over.splice(over.end(), arriving_, at);
                }
                at = next;
            }
        }
        // Not under our lock: handlers take it under the worker's.
        for (arriving &a : over) {
            a.kept ? ucp_am_data_release(worker_, a.kept) : ucp_request_free(a.request);
        }
    }

  private:
    struct arriving {
        arriving(const am_header &header, std::vector<char> room, void *of_ucp = nullptr,
                 bool complete = false)
            : h(header), data(std::move(room)), kept(of_ucp), over(complete)
        {
        }

        am_header h;
        std::vector<char> data;
        void *kept;
        std::atomic<bool> over;
        ucs_status_ptr_t request = nullptr;
    };

    ucs_status_t on_message(const am_header &h, void *data, uint64_t attributes)
    {
        std::lock_guard guard(mutex_);
        if (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) {
            arriving &a = arriving_.emplace_back(h, std::vector<char>(h.length));
            ucp_request_param_t p = called_later(
                [](void *, ucs_status_t status, size_t, void *to) {
                    REQUIRE(status == UCS_OK);
                    static_cast<arriving *>(to)->over = true;
                },
                &a);
            a.request = ucp_am_recv_data_nbx(worker_, data, a.data.data(), h.length, &p);
            REQUIRE(UCS_PTR_IS_PTR(a.request));
            return UCS_INPROGRESS;
        }
        if ((attributes & UCP_AM_RECV_ATTR_FLAG_DATA) && h.seed % 2) {
            arriving_.emplace_back(h, std::vector<char>(), data, true);
            return UCS_INPROGRESS;
        }
        has_come(h, data);
        return UCS_OK;
    }

    void has_come(const am_header &h, const void *data)
    {
        REQUIRE(expected_.erase(h.seed) == 1); // once each
        REQUIRE(schedule::same(data, pattern(h.length, h.seed).data(), h.length));
    }

    ucp_worker_h worker_;
    mutable std::mutex mutex_;
    std::set<uint32_t> expected_; // seeds
    std::list<arriving> arriving_;
};

} // namespace ucp_model
