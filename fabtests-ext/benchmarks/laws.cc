// SPDX-License-Identifier: BSD-3-Clause
//
// What an operation of UCP costs beside 10, 100, 1,000 and 10,000 others of its kind, and the slope
// of that in a log-log plot: 0 is a cost that does not grow, 1 one that is proportional. The
// endpoints are a worker's to itself, so that no transport's own laws are in it.
// usage: laws [MOST [TRANSPORTS]]
#include <ucp/api/ucp.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

void check(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fprintf(stderr, "%s: %s\n", what, ucs_status_string(status));
        exit(1);
    }
}

class crowd {
  public:
    crowd()
    {
        ucp_params_t params = {};
        params.field_mask = UCP_PARAM_FIELD_FEATURES;
        params.features = UCP_FEATURE_TAG | UCP_FEATURE_RMA;
        check(ucp_init(&params, nullptr, &context), "ucp_init");
        ucp_worker_params_t worker_params = {};
        check(ucp_worker_create(context, &worker_params, &worker), "ucp_worker_create");
        check(ucp_worker_get_address(worker, &address, &address_length), "ucp_worker_get_address");
        add_endpoint();
        target = map(&word, sizeof(word));
        key = unpack(target);
    }

    void finish(ucs_status_ptr_t request, const char *what) const
    {
        ucs_status_t status = UCS_PTR_STATUS(request);
        if (UCS_PTR_IS_PTR(request)) {
            while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) {
                ucp_worker_progress(worker);
            }
            ucp_request_free(request);
        }
        check(status, what);
    }

    void add_endpoint()
    {
        ucp_ep_params_t params = {};
        params.field_mask =
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
        params.address = address;
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        endpoints.push_back(nullptr);
        check(ucp_ep_create(worker, &params, &endpoints.back()), "ucp_ep_create");
    }

    void lose_endpoint()
    {
        ucp_request_param_t param = {};
        param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        finish(ucp_ep_close_nbx(endpoints.back(), &param), "ucp_ep_close_nbx");
        endpoints.pop_back();
    }

    ucp_mem_h map(void *memory, size_t length) const
    {
        ucp_mem_map_params_t params = {};
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = memory;
        params.length = length;
        ucp_mem_h memh = nullptr;
        check(ucp_mem_map(context, &params, &memh), "ucp_mem_map");
        return memh;
    }

    ucp_rkey_h unpack(ucp_mem_h memh) const
    {
        void *packed = nullptr;
        size_t size = 0;
        check(ucp_rkey_pack(context, memh, &packed, &size), "ucp_rkey_pack");
        ucp_rkey_h unpacked = nullptr;
        check(ucp_ep_rkey_unpack(endpoints[0], packed, &unpacked), "ucp_ep_rkey_unpack");
        ucp_rkey_buffer_release(packed);
        return unpacked;
    }

    void post_receive(ucp_tag_t tag)
    {
        ucp_request_param_t param = {};
        receives.push_back(
            ucp_tag_recv_nbx(worker, &landing, sizeof(landing), tag, ~ucp_tag_t(0), &param));
    }

    // A message for the receive that was posted last.
    void match()
    {
        ucp_request_param_t param = {};
        finish(ucp_tag_send_nbx(endpoints[0], &word, sizeof(word), receives.size(), &param),
               "ucp_tag_send_nbx");
        finish(receives.back(), "ucp_tag_recv_nbx");
        receives.pop_back();
    }

    void put()
    {
        ucp_request_param_t param = {};
        finish(ucp_put_nbx(endpoints[0], &landing, sizeof(landing),
                           reinterpret_cast<uint64_t>(&word), key, &param),
               "ucp_put_nbx");
    }

    void flush() const
    {
        ucp_request_param_t param = {};
        finish(ucp_worker_flush_nbx(worker, &param), "ucp_worker_flush_nbx");
    }

    ucp_context_h context = nullptr;
    ucp_worker_h worker = nullptr;
    ucp_address_t *address = nullptr;
    size_t address_length = 0;
    std::vector<ucp_ep_h> endpoints;
    std::vector<ucs_status_ptr_t> receives;
    ucp_mem_h target = nullptr;
    ucp_rkey_h key = nullptr;
    uint64_t word = 0, landing = 0;
};

struct law {
    const char *name;
    std::function<void(size_t)> grow; // until there are so many
    std::function<void()> prepare;    // not measured
    std::function<void()> act;
};

double nanoseconds(const law &l)
{
    using clock = std::chrono::steady_clock;
    std::vector<double> took;
    for (int i = 0; i < 200; ++i) {
        l.prepare();
        auto begin = clock::now();
        l.act();
        took.push_back(std::chrono::duration<double, std::nano>(clock::now() - begin).count());
    }
    std::nth_element(took.begin(), took.begin() + 50, took.end());
    return took[50]; // a quarter is faster: what else the machine does is hardly in it
}

// Of the line through log N, log time that is nearest to all points.
double slope(const std::vector<size_t> &counts, const std::vector<double> &times)
{
    double n = static_cast<double>(counts.size()), x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
        double a = std::log(static_cast<double>(counts[i])), b = std::log(times[i]);
        x += a, y += b, xx += a * a, xy += a * b;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}

void print(const law &l, size_t most)
{
    std::vector<size_t> counts;
    std::vector<double> times;
    printf("%-28s", l.name);
    for (size_t n = 10; n <= most; n *= 10) {
        l.grow(n);
        counts.push_back(n);
        times.push_back(nanoseconds(l));
        printf(" %10.0f", times.back());
        fflush(stdout);
    }
    printf("   %6.2f\n", counts.size() > 1 ? slope(counts, times) : 0.0);
}

std::vector<law> laws_of(crowd &c, std::vector<ucp_mem_h> &regions, std::vector<ucp_rkey_h> &keys,
                         std::vector<uint64_t> &words)
{
    auto nothing = [] {};
    auto endpoints = [&c](size_t n) {
        while (c.endpoints.size() < n) {
            c.add_endpoint();
        }
        for (int i = 0; i < 1000; ++i) {
            ucp_worker_progress(c.worker);
        }
    };
    auto receives = [&c](size_t n) {
        while (c.receives.size() < n) {
            c.post_receive(c.receives.size() + 1);
        }
    };
    auto mapped = [&](size_t n) {
        while (regions.size() < n) {
            regions.push_back(c.map(&words[regions.size()], sizeof(uint64_t)));
            keys.push_back(c.unpack(regions.back()));
        }
    };
    return {
        {"tag match, all-to-all", receives, [&c] { c.post_receive(c.receives.size() + 1); },
         [&c] { c.match(); }},
        {"register", mapped, nothing, [&] { ucp_mem_unmap(c.context, c.map(&words.back(), 8)); }},
        {"key unpack", mapped, nothing, [&] { ucp_rkey_destroy(c.unpack(regions.front())); }},
        {"poll of idle peers", endpoints, nothing, [&c] { ucp_worker_progress(c.worker); }},
        {"fence", endpoints, [&c] { c.put(); },
         [&c] { check(ucp_worker_fence(c.worker), "ucp_worker_fence"); }},
        {"flush", endpoints, [&c] { c.put(); }, [&c] { c.flush(); }},
        {"connect", endpoints, [&c] { c.lose_endpoint(); }, [&c] { c.add_endpoint(); }},
        {"loss", endpoints, [&c] { c.add_endpoint(); }, [&c] { c.lose_endpoint(); }},
    };
}

} // namespace

int main(int argc, char **argv)
{
    size_t most = argc > 1 ? strtoul(argv[1], nullptr, 10) : 10000;
    setenv("UCX_TLS", argc > 2 ? argv[2] : "self", 1);
    printf("%-28s", "nanoseconds, beside N others");
    for (size_t n = 10; n <= most; n *= 10) {
        printf(" %10zu", n);
    }
    printf("   %6s\n", "slope");
    std::vector<ucp_mem_h> regions;
    std::vector<ucp_rkey_h> keys;
    std::vector<uint64_t> words(most + 1);
    for (size_t i = 0; i < 8; ++i) { // each law by itself
        auto *c = new crowd;         // ends with the process
        regions.clear();
        keys.clear();
        print(laws_of(*c, regions, keys, words)[i], most);
    }
    fflush(stdout);
    _Exit(0);
}
