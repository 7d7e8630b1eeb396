// SPDX-License-Identifier: BSD-3-Clause
// What a device of the connection manager asks its completion queue for: a look costs a system
// call.
#include "uct/ofi/cm/device.h"

#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace {

using namespace uct::ofi;

class uct_cm_device_test : public ::testing::Test {
  protected:
    void SetUp() override
    {
        const core *tcp = find_core("tcp");
        ASSERT_TRUE(tcp);
        const fi_info *info = devices(*tcp).front().infos.front();
        fid_fabric *fabric = nullptr;
        ASSERT_EQ(0, fi_fabric(info->fabric_attr, &fabric, nullptr));
        fabric_.reset(fabric);
        device_ = std::make_unique<cm_device>(*tcp, fabric, info);
    }

    cm_op *leave_one()
    {
        cm_op *op = device_->get_op(nullptr, true, cm_wire::header_size);
        device_->leave_behind(op);
        return op;
    }

    void complete(cm_op *op)
    {
        device_->completed(op);
        device_->put_op(op);
    }

    fid_ptr<fid_fabric> fabric_;
    std::unique_ptr<cm_device> device_;
};

TEST_F(uct_cm_device_test, asks_while_a_channel_is_up)
{
    EXPECT_FALSE(device_->may_complete());
    device_->channel_up();
    EXPECT_TRUE(device_->may_complete());
    device_->channel_down();
    EXPECT_FALSE(device_->may_complete());
}

TEST_F(uct_cm_device_test, does_not_ask_for_what_a_closed_channel_has_left)
{
    cm_op *op = leave_one();
    EXPECT_FALSE(device_->may_complete());
    EXPECT_TRUE(device_->has_left_behind()); // to be taken before a thread sleeps
    complete(op);
    EXPECT_FALSE(device_->has_left_behind());
}

TEST_F(uct_cm_device_test, asks_when_much_was_left)
{
    std::vector<cm_op *> ops;
    while (!device_->may_complete()) {
        ASSERT_LT(ops.size(), 1000u); // of the 4096 that the queue holds
        ops.push_back(leave_one());
    }
    EXPECT_GT(ops.size(), 1u);
    for (cm_op *op : ops) {
        complete(op);
    }
    EXPECT_FALSE(device_->may_complete());
    EXPECT_FALSE(device_->has_left_behind());
}

} // namespace
