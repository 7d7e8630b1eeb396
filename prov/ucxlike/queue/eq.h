// SPDX-License-Identifier: BSD-3-Clause
//
// An event queue: connection events, AV insertions, the application's own events, in one order.
// Reading it progresses the engines of the endpoints bound to it. Events of a closed fid are gone.
#pragma once

#include "prov/ucxlike/queue/queue.h"

#include <list>
#include <string>

namespace ucxlike {

struct fabric;

class eq final : public fid_eq, public waitable {
  public:
    static int open(fid_fabric *fab, fi_eq_attr *attr, fid_eq **out, void *context);

    struct event {
        uint32_t type = 0; // FI_CONNREQ, ...; or the application's
        int error = 0;     // an error entry
        int prov_errno = 0;
        fid_t fid = nullptr;
        void *context = nullptr;
        uint64_t data = 0;
        fi_info *info = nullptr; // FI_CONNREQ: the reader gets it
        std::string bytes;       // CM data, err_data or the application's entry
        bool cm = false;         // fi_eq_cm_entry
        bool user = false;       // bytes is the whole entry
    };
    // One event, made before it is known whether there will be one: writing it needs no memory. Its
    // bytes do.
    using slot = std::list<event>;
    static slot make_slot() { return slot(1); }
    void write(slot &&e) noexcept;
    void write(event &&e)
    {
        slot s;
        s.push_back(std::move(e));
        write(std::move(s));
    }
    void purge(fid_t fid); // no event of this fid can be read any more

    ~eq() override;
    bool news() override
    {
        ucs::opt_guard g(lock_);
        return !events_.empty();
    }

  private:
    eq(fabric *fab, const fi_eq_attr &attr, void *context);

    ssize_t take(uint32_t *type, void *buf, size_t len, uint64_t flags);

    static ssize_t read(fid_eq *f, uint32_t *type, void *buf, size_t len, uint64_t flags);
    static ssize_t readerr(fid_eq *f, fi_eq_err_entry *buf, uint64_t flags);
    static ssize_t user_write(fid_eq *f, uint32_t type, const void *buf, size_t len,
                              uint64_t flags);
    static ssize_t sread(fid_eq *f, uint32_t *type, void *buf, size_t len, int timeout,
                         uint64_t flags);
    static const char *strerror(fid_eq *f, int prov_errno, const void *err_data, char *buf,
                                size_t len);
    static fi_ops_eq ops_;

    fabric *fabric_;
    ucs::opt_lock lock_{true};
    bool writable_;
    std::list<event> events_;
    std::string last_error_data_;
};

} // namespace ucxlike
