// SPDX-License-Identifier: BSD-3-Clause
//
// Tags, active messages and streams of many sizes at once between four workers, over cores that
// keep no order. UCXLIKE_TEST_MESSAGES: how many; `make check-strict-soak` sends a million.
#include "fabtests-ext/common/strict_cores.h"
#include "fabtests-ext/common/ucp_entity.h"

#include <array>
#include <list>
#include <random>

namespace {

using namespace ucp_test;

const bool found_by_path = use_strict_cores(); // for the other files of the program, too

constexpr unsigned workers = 4;
constexpr size_t longest = 100'000;

// What all messages are made of: the one of a number begins at a place of its own, and a stream is
// the text again and again.
class text {
  public:
    static constexpr size_t period = 65'521;

    text() : bytes_(period + longest, ' ')
    {
        std::mt19937 random(3);
        for (size_t i = 0; i < bytes_.size(); ++i) {
            bytes_[i] = i < period ? static_cast<char>(random()) : bytes_[i - period];
        }
    }
    const char *at(uint64_t place) const { return bytes_.data() + place % period; }

    static const text &get()
    {
        static const text all;
        return all;
    }

  private:
    std::string bytes_;
};

// What an active message says of itself.
struct head {
    uint32_t sender;
    uint32_t number; // from this sender to this receiver
    size_t length;
};

// A receive: of the next tagged message, of an active one's data, or of a piece of a stream.
struct receive {
    std::vector<char> data;
    ucs_status_ptr_t request = nullptr;
    uint64_t place = 0; // of its text

    // False: it is not over. Else it can be posted again.
    bool over()
    {
        if (ucp_request_check_status(request) == UCS_INPROGRESS) {
            return false;
        }
        EXPECT_EQ(UCS_OK, ucp_request_check_status(request));
        ucp_request_free(request);
        request = nullptr;
        return true;
    }
    void check(size_t length) const
    {
        ASSERT_LE(length, data.size());
        EXPECT_EQ(0, memcmp(data.data(), text::get().at(place), length)) << length << " bytes";
    }
};

class member {
  public:
    member(const char *tls, unsigned index) : index_(index)
    {
        options o;
        o.tls = tls;
        o.features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_STREAM;
        o.config = {{"RNDV_THRESH", "50000"}}; // half of the long ones
        self = std::make_unique<entity>(o);
        EXPECT_EQ(UCS_OK, set_am_handler(self->worker, 0, on_active, this));
    }

    void send(unsigned to, unsigned kind, size_t length)
    {
        ucp_request_param_t param = {};
        sent_one &s = sends_.emplace_back();
        if (kind == 0) {
            s.request = send_nb(eps[to], text::get().at(tags_sent_[to]++), length, index_);
        } else if (kind == 1) {
            s.about = {index_, actives_sent_[to]++, length};
            s.request = ucp_am_send_nbx(eps[to], 0, &s.about, sizeof(s.about),
                                        text::get().at(s.about.number), length, &param);
        } else {
            s.request = ucp_stream_send_nbx(eps[to], text::get().at(streamed[to]), length, &param);
            streamed[to] += length;
        }
        EXPECT_FALSE(UCS_PTR_IS_ERR(s.request)) << ucs_status_string(UCS_PTR_STATUS(s.request));
    }

    void progress()
    {
        ucp_worker_progress(self->worker);
        std::erase_if(sends_, [](sent_one &s) {
            bool done =
                !UCS_PTR_IS_PTR(s.request) || ucp_request_check_status(s.request) != UCS_INPROGRESS;
            if (done && UCS_PTR_IS_PTR(s.request)) {
                EXPECT_EQ(UCS_OK, ucp_request_check_status(s.request));
                ucp_request_free(s.request);
            }
            return done;
        });
        for (unsigned from = 0; from < workers; ++from) {
            if (eps[from]) {
                receive_tags(from);
                receive_stream(from);
            }
        }
        std::erase_if(landing_, [this](receive &r) {
            bool done = r.over();
            if (done) {
                r.check(r.data.size());
                ++messages;
            }
            return done;
        });
    }
    void cancel_tags()
    {
        for (auto &receives : tags_) {
            for (receive &r : receives) {
                cancel(r);
            }
        }
    }
    // Those of streams end with their endpoints.
    void free_streams()
    {
        for (receive &r : streams_) {
            if (r.request) {
                EXPECT_EQ(UCS_ERR_CANCELED, ucp_request_check_status(r.request));
                ucp_request_free(r.request);
            }
        }
    }
    bool idle() const { return sends_.empty(); }
    size_t outstanding() const { return sends_.size(); }

    std::unique_ptr<entity> self;
    std::array<ucp_ep_h, workers> eps = {};      // none to itself
    std::array<uint64_t, workers> streamed = {}; // bytes sent to each
    std::array<uint64_t, workers> streams = {};  // bytes that came from each
    size_t messages = 0;                         // that came, tagged and active
    size_t fetched = 0;                          // active ones that were

  private:
    struct sent_one {
        ucs_status_ptr_t request;
        head about;
    };

    // The core has taken a message, or it is matched, in the order of the receives.
    void receive_tags(unsigned from)
    {
        for (receive &r : tags_[from]) {
            if (r.request && ucp_request_check_status(r.request) != UCS_INPROGRESS) {
                ucp_tag_recv_info_t info = {};
                EXPECT_EQ(UCS_OK, ucp_tag_recv_request_test(r.request, &info));
                EXPECT_TRUE(r.over());
                r.check(info.length);
                ++messages;
            }
        }
        for (receive &r : tags_[from]) {
            if (!r.request) {
                r.data.resize(longest);
                r.place = tags_posted_[from]++;
                ucp_request_param_t param = {};
                param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
                r.request = ucp_tag_recv_nbx(self->worker, r.data.data(), longest, from,
                                             ~ucp_tag_t(0), &param);
                ASSERT_TRUE(UCS_PTR_IS_PTR(r.request));
            }
        }
    }
    void receive_stream(unsigned from)
    {
        receive &r = streams_[from];
        for (;;) {
            size_t length = 0;
            if (r.request) {
                if (ucp_stream_recv_request_test(r.request, &length) == UCS_INPROGRESS) {
                    return;
                }
                EXPECT_TRUE(r.over());
                r.check(length);
                streams[from] += length;
            }
            r.data.resize(8192);
            r.place = streams[from];
            ucp_request_param_t param = {};
            param.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
            r.request =
                ucp_stream_recv_nbx(eps[from], r.data.data(), r.data.size(), &length, &param);
            ASSERT_TRUE(UCS_PTR_IS_PTR(r.request));
        }
    }
    static ucs_status_t on_active(void *arg, const void *header, size_t header_length, void *data,
                                  size_t length, const ucp_am_recv_param_t *param)
    {
        auto *m = static_cast<member *>(arg);
        head h;
        EXPECT_EQ(sizeof(h), header_length);
        memcpy(&h, header, sizeof(h));
        EXPECT_LT(h.sender, workers);
        EXPECT_EQ(m->actives_[h.sender]++, h.number) << "from " << h.sender;
        EXPECT_EQ(h.length, length);
        if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
            EXPECT_EQ(0, memcmp(data, text::get().at(h.number), length));
            ++m->messages;
            return UCS_OK;
        }
        ++m->fetched;
        receive &r = m->landing_.emplace_back();
        r.data.resize(length);
        r.place = h.number;
        ucp_request_param_t p = {};
        p.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
        r.request = ucp_am_recv_data_nbx(m->self->worker, data, r.data.data(), length, &p);
        EXPECT_TRUE(UCS_PTR_IS_PTR(r.request));
        return UCS_OK;
    }
    void cancel(receive &r)
    {
        if (r.request) {
            ucp_request_cancel(self->worker, r.request);
            run_until({self.get()},
                      [&] { return ucp_request_check_status(r.request) != UCS_INPROGRESS; });
            ucp_request_free(r.request);
            r.request = nullptr;
        }
    }

    const unsigned index_;
    std::list<sent_one> sends_;
    std::array<std::array<receive, 4>, workers> tags_;
    std::array<receive, workers> streams_;
    std::list<receive> landing_; // of active messages, while their data is fetched
    std::array<uint64_t, workers> tags_posted_ = {};
    std::array<uint64_t, workers> tags_sent_ = {};
    std::array<uint32_t, workers> actives_sent_ = {};
    std::array<uint32_t, workers> actives_ = {}; // the next number from each
};

class ucp_strict_order : public testing::TestWithParam<const char *> {
  protected:
    void SetUp() override
    {
        for (unsigned i = 0; i < workers; ++i) {
            all.push_back(std::make_unique<member>(GetParam(), i));
        }
        for (auto &from : all) {
            for (unsigned to = 0; to < workers; ++to) {
                if (all[to] != from) {
                    ASSERT_EQ(UCS_OK,
                              create_ep(*from->self, all[to]->self->address(), &from->eps[to]));
                }
            }
        }
    }
    void TearDown() override
    {
        for (auto &m : all) {
            m->cancel_tags();
        }
        std::vector<ucs_status_ptr_t> closing;
        for (auto &m : all) {
            for (ucp_ep_h ep : m->eps) {
                if (ep) {
                    closing.push_back(close_nb(ep));
                }
            }
        }
        for (ucs_status_ptr_t c : closing) {
            EXPECT_EQ(UCS_OK, wait({all[0]->self.get(), all[1]->self.get(), all[2]->self.get(),
                                    all[3]->self.get()},
                                   c));
        }
        for (auto &m : all) {
            m->free_streams();
        }
    }
    void progress()
    {
        for (auto &m : all) {
            m->progress();
        }
    }
    // Every byte of every stream came, and everything was sent.
    bool all_came(size_t messages) const
    {
        size_t came = 0;
        bool streams = true;
        for (unsigned i = 0; i < workers; ++i) {
            came += all[i]->messages;
            for (unsigned j = 0; j < workers; ++j) {
                streams = streams && all[i]->streamed[j] == all[j]->streams[i];
            }
            streams = streams && all[i]->idle();
        }
        EXPECT_LE(came, messages);
        return streams && came == messages;
    }

    std::vector<std::unique_ptr<member>> all;
};

TEST_P(ucp_strict_order, tags_active_messages_and_streams_between_four_workers)
{
    const char *asked = getenv("UCXLIKE_TEST_MESSAGES");
    const size_t count = asked ? strtoul(asked, nullptr, 10) : 3000;
    constexpr size_t most = 16; // outstanding of a worker
    std::mt19937 random(9);
    size_t messages = 0;
    for (size_t i = 0; i < count && !HasFailure(); ++i) {
        unsigned from = random() % workers;
        unsigned to = (from + 1 + random() % (workers - 1)) % workers;
        unsigned kind = random() % 3;
        size_t length = 1 + (random() % 8 == 0 ? random() % longest : random() % 256);
        all[from]->send(to, kind, length);
        messages += kind != 2;
        auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
        do {
            progress();
        } while (all[from]->outstanding() > most && std::chrono::steady_clock::now() < end);
        ASSERT_LE(all[from]->outstanding(), most) << "message " << i << " does not leave";
    }
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(patience);
    while (!all_came(messages) && !HasFailure() && std::chrono::steady_clock::now() < end) {
        progress();
    }
    EXPECT_TRUE(all_came(messages));
    for (auto &m : all) {
        EXPECT_GT(m->fetched, 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(over, ucp_strict_order, testing::Values("opx", "efa", "worst"),
                         transports_name);

} // namespace
