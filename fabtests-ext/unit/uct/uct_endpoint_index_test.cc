// SPDX-License-Identifier: BSD-3-Clause
// The connection of an event is found without looking at the others, and an endpoint that was
// closed is not found.
#include "uct/ofi/msg/endpoint_index.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace {

using namespace uct::ofi;

size_t compared = 0;

struct counting {
    bool operator()(const fid *a, const fid *b) const
    {
        ++compared;
        return a == b;
    }
};

using index_of_numbers = endpoint_index<size_t, counting>;

// Endpoints of no core.
class endpoints {
  public:
    endpoints() { ops_.close = close; }

    fid_ptr<fid_ep> make()
    {
        all_.push_back({});
        all_.back().fid.ops = &ops_;
        all_.back().fid.context = &closed;
        return fid_ptr<fid_ep>(&all_.back());
    }

    unsigned closed = 0;

  private:
    static int close(fid *which)
    {
        ++*static_cast<unsigned *>(which->context);
        return 0;
    }

    fi_ops ops_{};
    std::deque<fid_ep> all_;
};

TEST(uct_endpoint_index, a_lookup_does_not_grow_with_the_endpoints)
{
    for (size_t count : {10u, 100u, 1000u, 10000u}) {
        endpoints core;
        index_of_numbers index;
        std::vector<size_t> owners(count);
        std::vector<index_of_numbers::entry> open;
        for (size_t i = 0; i < count; ++i) {
            open.emplace_back(index, &owners[i], core.make());
        }
        compared = 0;
        for (size_t i = 0; i < count; ++i) {
            ASSERT_EQ(&owners[i], index.find(&open[i].get()->fid));
        }
        EXPECT_LE(compared, 3 * count) << count;
    }
}

TEST(uct_endpoint_index, a_closed_endpoint_is_not_found)
{
    endpoints core;
    index_of_numbers index;
    size_t first = 1, second = 2;
    index_of_numbers::entry gone(index, &first, core.make());
    index_of_numbers::entry stays(index, &second, core.make());
    const fid *stale = &gone.get()->fid;
    gone.reset();
    EXPECT_FALSE(gone);
    EXPECT_EQ(1u, core.closed);
    EXPECT_EQ(nullptr, index.find(stale));
    EXPECT_EQ(&second, index.find(&stays.get()->fid));
}

TEST(uct_endpoint_index, an_entry_that_is_replaced_is_closed)
{
    endpoints core;
    index_of_numbers index;
    size_t owner = 1;
    {
        index_of_numbers::entry at(index, &owner, core.make());
        const fid *old = &at.get()->fid;
        at = index_of_numbers::entry(index, &owner, core.make());
        EXPECT_EQ(1u, core.closed);
        EXPECT_EQ(nullptr, index.find(old));
        EXPECT_EQ(&owner, index.find(&at.get()->fid));
    }
    EXPECT_EQ(2u, core.closed);
}

} // namespace
