// SPDX-License-Identifier: BSD-3-Clause
// Every public uct_* function, over every transport, once with good input and once with bad. A
// function of fabtests-ext/abi/support.tsv without a row here fails the test, and so does an item
// of the list of observable behaviours (197 to 218) that no case of this program has in its name.
// What a transport's capabilities do not have must be refused as unsupported.
#include "fabtests-ext/common/support_table.h"
#include "fabtests-ext/conformance/common/uct_cm_peer.h"
#include "fabtests-ext/conformance/common/uct_remote.h"

#include "ucs/log.h"

#include <uct/api/v2/uct_v2.h>

#include <set>

namespace uct_conformance {
namespace {

constexpr ucs_status_t INVALID = UCS_ERR_INVALID_PARAM;

class uct_coverage : public uct_remote {
  public:
    using uct_remote::a;
    using uct_remote::address;
    using uct_remote::alone;
    using uct_remote::b;
    using uct_remote::ep;
    using uct_remote::key;
    using uct_remote::local;
    using uct_remote::local_memh;
    using uct_remote::post;
    using uct_remote::run;
    using uct_remote::target;
    using uct_remote::target_memh;
    using uct_remote::until;

    uct_iov_t iov(size_t length) { return {local.data(), length, local_memh, 0, 1}; }
    bool has_cm()
    {
        uct_component_attr_t attr{};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_FLAGS;
        EXPECT_EQ(uct_component_query(a().component, &attr), UCS_OK);
        return attr.flags & UCT_COMPONENT_FLAG_CM;
    }
    void quiesce() { flush(); }
    size_t messages() { return b().received.size(); }
    // A message of b arrives after a call that sent one.
    template <class Send>
    void arrives(Send &&send)
    {
        size_t before = messages();
        send();
        EXPECT_TRUE(until([&] { return messages() == before + 1; }));
    }
    template <class Refused>
    void unless(uint64_t cap, bool *has, Refused &&refused)
    {
        *has = a().has(cap);
        if (!*has) {
            EXPECT_EQ(static_cast<ssize_t>(refused()), ssize_t{UCS_ERR_UNSUPPORTED});
        }
    }
};

using act = void (*)(uct_coverage &);
struct row {
    const char *function;
    act good;
    act bad;
};

size_t pack_word(void *dest, void *)
{
    memcpy(dest, "packed", 6);
    return 6;
}

void unpack_word(void *arg, const void *data, size_t length)
{
    static_cast<std::string *>(arg)->assign(static_cast<const char *>(data), length);
}

uct_completion_t not_called()
{
    return {[](uct_completion_t *) { ADD_FAILURE() << "completion of a refused call"; }, 1, UCS_OK};
}

// ---- Components, configuration, worker

void components(uct_coverage &)
{
    uct_component_h *list = nullptr;
    unsigned count = 0;
    ASSERT_EQ(uct_query_components(&list, &count), UCS_OK);
    EXPECT_GE(count, 2u); // self and one more
    for (unsigned i = 0; i < count; ++i) {
        uct_component_attr_t attr{};
        attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME |
                          UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT |
                          UCT_COMPONENT_ATTR_FIELD_FLAGS;
        EXPECT_EQ(uct_component_query(list[i], &attr), UCS_OK);
        EXPECT_NE(attr.name[0], '\0');
        EXPECT_GE(attr.md_resource_count, 1u);
    }
    uct_release_component_list(list);
}

void bad_components(uct_coverage &t)
{
    unsigned count;
    uct_component_h *list;
    EXPECT_EQ(uct_query_components(nullptr, &count), INVALID);
    EXPECT_EQ(uct_query_components(&list, nullptr), INVALID);
    uct_component_attr_t attr{};
    EXPECT_EQ(uct_component_query(nullptr, &attr), INVALID);
    EXPECT_EQ(uct_component_query(t.a().component, nullptr), INVALID);
    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    EXPECT_EQ(uct_component_query(t.a().component, &attr), INVALID);
    uct_release_component_list(nullptr);
}

void configuration(uct_coverage &t)
{
    uct_md_config_t *md = nullptr;
    uct_iface_config_t *iface = nullptr;
    ASSERT_EQ(uct_md_config_read(t.a().component, "APP", nullptr, &md), UCS_OK);
    ASSERT_EQ(uct_md_iface_config_read(t.a().md, t.a().resource.tl_name, nullptr, nullptr, &iface),
              UCS_OK);
    EXPECT_EQ(uct_config_modify(iface, "SEG_SIZE", "4096"), UCS_OK);
    char text[32];
    EXPECT_EQ(uct_config_get(iface, "SEG_SIZE", text, sizeof(text)), UCS_OK);
    EXPECT_STREQ(text, "4K");
    uct_config_release(md);
    uct_config_release(iface);
    if (t.has_cm()) {
        uct_cm_config_t *cm = nullptr;
        ASSERT_EQ(uct_cm_config_read(t.a().component, nullptr, nullptr, &cm), UCS_OK);
        EXPECT_EQ(uct_config_modify(cm, "PRIV_DATA_LEN", "2k"), UCS_OK);
        uct_config_release(cm);
    }
}

void bad_configuration(uct_coverage &t)
{
    uct_md_config_t *md = nullptr;
    uct_iface_config_t *iface = nullptr;
    uct_cm_config_t *cm = nullptr;
    EXPECT_EQ(uct_md_config_read(nullptr, nullptr, nullptr, &md), INVALID);
    EXPECT_EQ(uct_md_config_read(t.a().component, nullptr, nullptr, nullptr), INVALID);
    EXPECT_EQ(uct_md_iface_config_read(nullptr, "x", nullptr, nullptr, &iface), INVALID);
    EXPECT_EQ(uct_md_iface_config_read(t.a().md, "no such", nullptr, nullptr, &iface),
              UCS_ERR_NO_DEVICE);
    EXPECT_EQ(uct_cm_config_read(nullptr, nullptr, nullptr, &cm), INVALID);
    if (!t.has_cm()) {
        EXPECT_EQ(uct_cm_config_read(t.a().component, nullptr, nullptr, &cm), INVALID);
    }
    ASSERT_EQ(uct_md_iface_config_read(t.a().md, nullptr, nullptr, nullptr, &iface), UCS_OK);
    char text[32];
    EXPECT_EQ(uct_config_get(iface, "NO_SUCH", text, sizeof(text)), UCS_ERR_NO_ELEM);
    EXPECT_EQ(uct_config_get(iface, "SEG_SIZE", text, 0), INVALID);
    EXPECT_EQ(uct_config_modify(iface, "NO_SUCH", "1"), UCS_ERR_NO_ELEM);
    EXPECT_EQ(uct_config_modify(iface, "SEG_SIZE", "much"), INVALID);
    EXPECT_EQ(uct_config_modify(nullptr, "SEG_SIZE", "1"), INVALID);
    uct_config_release(iface);
    uct_config_release(nullptr);
}

unsigned count_call(void *arg)
{
    ++*static_cast<int *>(arg);
    return 1;
}

void workers(uct_coverage &)
{
    uct_worker_h worker = nullptr;
    ASSERT_EQ(uct_worker_create(nullptr, UCS_THREAD_MODE_SERIALIZED, &worker), UCS_OK);
    int calls = 0;
    uct_worker_cb_id_t id = UCS_CALLBACKQ_ID_NULL;
    uct_worker_progress_register_safe(worker, count_call, &calls, 0, &id);
    EXPECT_NE(id, UCS_CALLBACKQ_ID_NULL);
    EXPECT_GT(uct_worker_progress(worker), 0u);
    uct_worker_progress_unregister_safe(worker, &id);
    EXPECT_EQ(id, UCS_CALLBACKQ_ID_NULL);
    EXPECT_EQ(uct_worker_progress(worker), 0u);
    EXPECT_EQ(calls, 1);
    uct_worker_destroy(worker);
}

void bad_workers(uct_coverage &t)
{
    uct_worker_h worker = nullptr;
    EXPECT_EQ(uct_worker_create(nullptr, UCS_THREAD_MODE_SINGLE, nullptr), INVALID);
    EXPECT_EQ(uct_worker_create(nullptr, UCS_THREAD_MODE_LAST, &worker), INVALID);
    EXPECT_EQ(worker, nullptr);
    uct_worker_cb_id_t id = UCS_CALLBACKQ_ID_NULL;
    uct_worker_progress_register_safe(t.a().worker, nullptr, nullptr, 0, &id);
    EXPECT_EQ(id, UCS_CALLBACKQ_ID_NULL);
    uct_worker_progress_unregister_safe(t.a().worker, nullptr);
    uct_worker_destroy(nullptr);
}

// ---- Connections by address

void connections(uct_coverage &t)
{
    if (!t.has_cm()) {
        return; // bad_connections() looks at the refusal
    }
    std::string component = t.a().md_attr.component_name;
    sockaddr_storage where = cm_test::test_address(component);
    cm_test::entity server(component);
    cm_test::entity client(component);
    EXPECT_GE(server.max_conn_priv(), 1024u); // uct_cm_query()
    // uct_listener_create(), _query(), _destroy() and, below, _reject()
    cm_test::acceptor accepts(server, where, cm_test::acceptor::policy::accept_at_once);
    cm_test::acceptor refuses(server, where, cm_test::acceptor::policy::reject_at_once);
    cm_test::peer first(client);
    cm_test::peer second(client);
    // uct_ep_create() by a cm, uct_ep_connect(), uct_cm_client_ep_conn_notify()
    ASSERT_EQ(first.connect(accepts.address()), UCS_OK);
    ASSERT_EQ(second.connect(refuses.address()), UCS_OK);
    ASSERT_TRUE(cm_test::wait([&] { return first.answered == 1 && second.answered == 1; }));
    EXPECT_EQ(first.status, UCS_OK);
    EXPECT_EQ(second.status, UCS_ERR_REJECTED);
    ASSERT_TRUE(cm_test::wait([&] { return accepts.accepted_count() == 1; }));
    ASSERT_TRUE(cm_test::wait([&] { return accepts.accepted(0).notified == 1; }));
    EXPECT_EQ(uct_ep_disconnect(first.ep(), 0), UCS_OK);
    EXPECT_TRUE(cm_test::wait([&] { return accepts.accepted(0).disconnected == 1; }));
}

void bad_connections(uct_coverage &t)
{
    uct_cm_h cm = nullptr;
    EXPECT_EQ(uct_cm_open(nullptr, t.a().worker, nullptr, &cm), INVALID);
    EXPECT_EQ(uct_cm_query(nullptr, nullptr), INVALID);
    uct_listener_h listener = nullptr;
    uct_listener_params_t params{};
    sockaddr_storage where = cm_test::ipv4("127.0.0.1", 0);
    EXPECT_EQ(uct_listener_create(nullptr, reinterpret_cast<sockaddr *>(&where), sizeof(where),
                                  &params, &listener),
              INVALID);
    EXPECT_EQ(uct_listener_query(nullptr, nullptr), INVALID);
    EXPECT_EQ(uct_listener_reject(nullptr, nullptr), INVALID);
    EXPECT_EQ(uct_ep_connect(nullptr, nullptr), INVALID);
    EXPECT_EQ(uct_ep_disconnect(nullptr, 0), INVALID);
    EXPECT_EQ(uct_ep_disconnect(t.ep, 0), UCS_ERR_UNSUPPORTED); // carries data
    EXPECT_EQ(uct_cm_client_ep_conn_notify(nullptr), INVALID);
    uct_listener_destroy(nullptr);
    uct_cm_close(nullptr);
    EXPECT_EQ(uct_iface_accept(nullptr, nullptr), INVALID);
    EXPECT_EQ(uct_iface_reject(t.a().iface, nullptr), INVALID);
    // An interface on a device has no requests.
    EXPECT_EQ(uct_iface_accept(t.a().iface, &where), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_iface_reject(t.a().iface, &where), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_md_is_sockaddr_accessible(t.a().md, nullptr, UCT_SOCKADDR_ACC_LOCAL), 0);
}

// uct_sockaddr_test does it at length.
void requests(uct_coverage &t)
{
    if (!t.has_cm()) {
        return;
    }
    sockaddr_in any{};
    any.sin_family = AF_INET;
    ucs_sock_addr_t where{reinterpret_cast<sockaddr *>(&any), sizeof(any)};
    ASSERT_TRUE(uct_md_is_sockaddr_accessible(t.a().md, &where, UCT_SOCKADDR_ACC_LOCAL));
    uct_iface_config_t *config = nullptr;
    ASSERT_EQ(uct_md_iface_config_read(t.a().md, nullptr, nullptr, nullptr, &config), UCS_OK);
    std::vector<uct_conn_request_h> waiting;
    uct_iface_params_t params{};
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE | UCT_IFACE_PARAM_FIELD_SOCKADDR;
    params.open_mode = UCT_IFACE_OPEN_MODE_SOCKADDR_SERVER;
    params.mode.sockaddr.listen_sockaddr = where;
    params.mode.sockaddr.conn_request_arg = &waiting;
    params.mode.sockaddr.conn_request_cb = [](uct_iface_h, void *arg, uct_conn_request_h request,
                                              const void *, size_t) {
        static_cast<std::vector<uct_conn_request_h> *>(arg)->push_back(request);
    };
    uct_iface_h server = nullptr;
    uct_iface_h client = nullptr;
    ASSERT_EQ(uct_iface_open(t.a().md, t.a().worker, &params, config, &server), UCS_OK);
    params.open_mode = UCT_IFACE_OPEN_MODE_SOCKADDR_CLIENT;
    ASSERT_EQ(uct_iface_open(t.a().md, t.a().worker, &params, config, &client), UCS_OK);
    uct_config_release(config);
    uct_iface_attr_t attr;
    ASSERT_EQ(uct_iface_query(server, &attr), UCS_OK);
    sockaddr_storage to = cm_test::test_address(t.a().md_attr.component_name);
    cm_test::set_port(to, cm_test::port_of(attr.listen_sockaddr));
    ucs_sock_addr_t there{reinterpret_cast<sockaddr *>(&to), sizeof(sockaddr_in)};
    uct_ep_params_t ep_params{};
    ep_params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_SOCKADDR;
    ep_params.iface = client;
    ep_params.sockaddr = &there;
    for (ucs_status_t expected : {UCS_OK, UCS_ERR_REJECTED}) {
        uct_ep_h ep = nullptr;
        ASSERT_EQ(uct_ep_create(&ep_params, &ep), UCS_OK);
        EXPECT_TRUE(t.until([&] { return waiting.size() == 1; }));
        EXPECT_EQ(expected == UCS_OK ? uct_iface_accept(server, waiting.back())
                                     : uct_iface_reject(server, waiting.back()),
                  UCS_OK);
        waiting.clear();
        EXPECT_TRUE(t.until(
            [&] { return uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, nullptr) != UCS_INPROGRESS; }));
        EXPECT_EQ(uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, nullptr), expected);
        uct_ep_destroy(ep);
    }
    uct_iface_close(client);
    uct_iface_close(server);
}

// ---- Memory

void domains(uct_coverage &t)
{
    uct_md_config_t *config = nullptr;
    ASSERT_EQ(uct_md_config_read(t.a().component, nullptr, nullptr, &config), UCS_OK);
    uct_component_attr_t about{};
    about.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    ASSERT_EQ(uct_component_query(t.a().component, &about), UCS_OK);
    std::vector<uct_md_resource_desc_t> names(about.md_resource_count);
    about.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    about.md_resources = names.data();
    ASSERT_EQ(uct_component_query(t.a().component, &about), UCS_OK);
    uct_md_h md = nullptr;
    ASSERT_EQ(uct_md_open(t.a().component, names[0].md_name, config, &md), UCS_OK);
    uct_md_attr_t attr;
    EXPECT_EQ(uct_md_query(md, &attr), UCS_OK);
    uct_md_attr_v2_t newer{};
    newer.field_mask = UCT_MD_ATTR_FIELD_FLAGS;
    newer.max_reg = 1;
    EXPECT_EQ(uct_md_query_v2(md, &newer), UCS_OK);
    EXPECT_EQ(newer.flags, attr.cap.flags);
    EXPECT_EQ(newer.max_reg, 1u); // not asked for
    uct_tl_resource_desc_t *resources = nullptr;
    unsigned count = 0;
    EXPECT_EQ(uct_md_query_tl_resources(md, &resources, &count), UCS_OK);
    EXPECT_GE(count, 1u);
    uct_release_tl_resource_list(resources);
    uct_md_close(md);
    uct_config_release(config);
}

void bad_domains(uct_coverage &t)
{
    uct_md_config_t *config = nullptr;
    ASSERT_EQ(uct_md_config_read(t.a().component, nullptr, nullptr, &config), UCS_OK);
    uct_md_h md = nullptr;
    EXPECT_EQ(uct_md_open(t.a().component, "no such domain", config, &md), UCS_ERR_NO_DEVICE);
    EXPECT_EQ(uct_md_open(t.a().component, "x", nullptr, &md), INVALID);
    EXPECT_EQ(md, nullptr);
    uct_config_release(config);
    EXPECT_EQ(uct_md_query(nullptr, nullptr), INVALID);
    EXPECT_EQ(uct_md_query(t.a().md, nullptr), INVALID);
    EXPECT_EQ(uct_md_query_v2(nullptr, nullptr), INVALID);
    EXPECT_EQ(uct_md_query_v2(t.a().md, nullptr), INVALID);
    unsigned count;
    EXPECT_EQ(uct_md_query_tl_resources(t.a().md, nullptr, &count), INVALID);
    uct_release_tl_resource_list(nullptr);
    uct_md_close(nullptr);
}

void registration(uct_coverage &t)
{
    std::string memory(10000, 'm');
    uct_mem_h memh = nullptr;
    ASSERT_EQ(uct_md_mem_reg(t.b().md, memory.data(), memory.size(), UCT_MD_MEM_ACCESS_ALL, &memh),
              UCS_OK);
    EXPECT_EQ(uct_md_mem_advise(t.b().md, memh, memory.data(), memory.size(), UCT_MADV_WILLNEED),
              UCS_OK);
    std::vector<char> packed(t.b().md_attr.rkey_packed_size + 1, 'z');
    EXPECT_EQ(uct_md_mkey_pack(t.b().md, memh, packed.data()), UCS_OK);
    EXPECT_EQ(packed.back(), 'z'); // 211: not a byte more
    uct_md_mem_reg_params_t how{};
    how.field_mask = UCT_MD_MEM_REG_FIELD_FLAGS;
    how.flags = UCT_MD_MEM_ACCESS_ALL;
    uct_mem_h newer = nullptr;
    ASSERT_EQ(uct_md_mem_reg_v2(t.b().md, memory.data(), memory.size(), &how, &newer), UCS_OK);
    uct_md_mkey_pack_params_t kind{};
    std::vector<char> key(packed.size());
    EXPECT_EQ(uct_md_mkey_pack_v2(t.b().md, newer, memory.data(), 10, &kind, key.data()), UCS_OK);
    EXPECT_EQ(uct_md_mem_dereg(t.b().md, newer), UCS_OK);
    uct_rkey_bundle_t rkey{};
    EXPECT_EQ(uct_rkey_unpack(t.a().component, packed.data(), &rkey), UCS_OK);
    EXPECT_EQ(uct_rkey_release(t.a().component, &rkey), UCS_OK);
    EXPECT_EQ(uct_md_mem_dereg(t.b().md, memh), UCS_OK);
    ucs_memory_type_t type;
    EXPECT_EQ(uct_md_detect_memory_type(t.a().md, memory.data(), memory.size(), &type), UCS_OK);
    uct_md_mem_attr_t attr{};
    attr.field_mask = UCT_MD_MEM_ATTR_FIELD_MEM_TYPE;
    EXPECT_EQ(uct_md_mem_query(t.a().md, memory.data(), memory.size(), &attr), UCS_OK);
}

void bad_registration(uct_coverage &t)
{
    uct_mem_h memh = nullptr;
    char byte = 0;
    EXPECT_EQ(uct_md_mem_reg(t.a().md, nullptr, 1, UCT_MD_MEM_ACCESS_ALL, &memh), INVALID);
    EXPECT_EQ(uct_md_mem_reg(t.a().md, &byte, 0, UCT_MD_MEM_ACCESS_ALL, &memh), INVALID);
    EXPECT_EQ(uct_md_mem_reg(t.a().md, &byte, 1, 1u << 30, &memh), INVALID);
    EXPECT_EQ(memh, nullptr);
    EXPECT_EQ(uct_md_mem_dereg(t.a().md, nullptr), INVALID);
    EXPECT_EQ(uct_md_mem_advise(t.a().md, t.local_memh, &byte, 1, UCT_MADV_WILLNEED), INVALID);
    EXPECT_EQ(uct_md_mkey_pack(t.a().md, nullptr, &byte), INVALID);
    uct_md_mem_reg_params_t how{};
    EXPECT_EQ(uct_md_mem_reg_v2(t.a().md, &byte, 1, nullptr, &memh), INVALID);
    EXPECT_EQ(uct_md_mem_reg_v2(t.a().md, nullptr, 1, &how, &memh), INVALID);
    EXPECT_EQ(memh, nullptr);
    uct_md_mkey_pack_params_t kind{};
    EXPECT_EQ(uct_md_mkey_pack_v2(t.a().md, t.local_memh, &byte, 1, nullptr, &byte), INVALID);
    EXPECT_EQ(uct_md_mkey_pack_v2(t.a().md, t.local_memh, &byte, 1, &kind, &byte), INVALID);
    uct_rkey_bundle_t rkey{};
    std::vector<char> garbage(1024, 'g');
    EXPECT_EQ(uct_rkey_unpack(t.a().component, garbage.data(), &rkey), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_rkey_unpack(t.a().component, nullptr, &rkey), INVALID);
    EXPECT_EQ(uct_rkey_release(t.a().component, nullptr), INVALID);
    void *there = nullptr;
    EXPECT_EQ(uct_rkey_ptr(t.a().component, nullptr, 0, &there), INVALID);
    uct_md_mem_attr_t attr{};
    EXPECT_EQ(uct_md_mem_query(t.a().md, nullptr, 1, &attr), INVALID);
    ucs_memory_type_t type;
    EXPECT_EQ(uct_md_detect_memory_type(t.a().md, nullptr, 1, &type), INVALID);
}

void allocation(uct_coverage &t)
{
    uct_allocated_memory_t memory;
    ASSERT_EQ(uct_iface_mem_alloc(t.b().iface, 5000, UCT_MD_MEM_ACCESS_ALL, "coverage", &memory),
              UCS_OK);
    memset(memory.address, 1, 5000);
    std::vector<char> packed(t.b().md_attr.rkey_packed_size);
    ASSERT_EQ(uct_md_mkey_pack(t.b().md, memory.memh, packed.data()), UCS_OK);
    uct_rkey_bundle_t rkey{};
    ASSERT_EQ(uct_rkey_unpack(t.a().component, packed.data(), &rkey), UCS_OK);
    uct_component_attr_t about{};
    about.field_mask = UCT_COMPONENT_ATTR_FIELD_FLAGS;
    ASSERT_EQ(uct_component_query(t.a().component, &about), UCS_OK);
    void *there = nullptr;
    ucs_status_t status =
        uct_rkey_ptr(t.a().component, &rkey, reinterpret_cast<uint64_t>(memory.address), &there);
    if (about.flags & UCT_COMPONENT_FLAG_RKEY_PTR) {
        EXPECT_EQ(status, UCS_OK);
        EXPECT_EQ(*static_cast<char *>(there), 1);
    } else {
        EXPECT_NE(status, UCS_OK);
    }
    EXPECT_EQ(uct_rkey_release(t.a().component, &rkey), UCS_OK);
    uct_iface_mem_free(&memory);
    uct_alloc_method_t method = UCT_ALLOC_METHOD_HEAP;
    uct_mem_alloc_params_t params{};
    ASSERT_EQ(uct_mem_alloc(100, &method, 1, &params, &memory), UCS_OK);
    EXPECT_EQ(uct_mem_free(&memory), UCS_OK);
}

void bad_allocation(uct_coverage &t)
{
    uct_allocated_memory_t memory{};
    uct_alloc_method_t method = UCT_ALLOC_METHOD_HEAP;
    uct_mem_alloc_params_t params{};
    EXPECT_EQ(uct_mem_alloc(0, &method, 1, &params, &memory), INVALID);
    EXPECT_EQ(uct_mem_alloc(1, &method, 0, &params, &memory), INVALID);
    EXPECT_EQ(uct_mem_alloc(1, &method, 1, nullptr, &memory), INVALID);
    EXPECT_EQ(uct_mem_free(nullptr), INVALID);
    EXPECT_EQ(uct_iface_mem_alloc(t.a().iface, 0, 0, "", &memory), INVALID);
    EXPECT_EQ(uct_iface_mem_alloc(nullptr, 1, 0, "", &memory), INVALID);
    uct_iface_mem_free(nullptr);
}

// ---- Active messages

void am_short(uct_coverage &t)
{
    t.arrives(
        [&] { EXPECT_EQ(t.post([&] { return uct_ep_am_short(t.ep, 3, 1, "x", 1); }), UCS_OK); });
}
void bad_am_short(uct_coverage &t)
{
    EXPECT_EQ(uct_ep_am_short(t.ep, UCT_AM_ID_MAX, 1, "x", 1), INVALID);
    EXPECT_EQ(uct_ep_am_short(t.ep, 0, 1, t.local.data(),
                              static_cast<unsigned>(t.a().attr.cap.am.max_short)),
              INVALID);
}
void am_short_iov(uct_coverage &t)
{
    uct_iov_t iov = t.iov(8);
    t.arrives(
        [&] { EXPECT_EQ(t.post([&] { return uct_ep_am_short_iov(t.ep, 3, &iov, 1); }), UCS_OK); });
}
void bad_am_short_iov(uct_coverage &t)
{
    uct_iov_t iov = t.iov(t.a().attr.cap.am.max_short + 1);
    EXPECT_EQ(uct_ep_am_short_iov(t.ep, 0, &iov, 1), INVALID);
}
void am_bcopy(uct_coverage &t)
{
    t.arrives([&] {
        EXPECT_EQ(t.post([&] { return uct_ep_am_bcopy(t.ep, 3, pack_word, nullptr, 0); }), 6);
    });
}
void bad_am_bcopy(uct_coverage &t)
{
    auto never = [](void *, void *) -> size_t {
        ADD_FAILURE() << "pack callback of a refused call";
        return 0;
    };
    EXPECT_EQ(uct_ep_am_bcopy(t.ep, UCT_AM_ID_MAX, never, nullptr, 0), ssize_t{INVALID});
}
void am_zcopy(uct_coverage &t)
{
    uct_iov_t iov = t.iov(100);
    t.arrives([&] {
        t.run([&](uct_completion_t *comp) {
            return uct_ep_am_zcopy(t.ep, 3, "head", 4, &iov, 1, 0, comp);
        });
    });
}
void bad_am_zcopy(uct_coverage &t)
{
    uct_completion_t comp = not_called();
    uct_iov_t iov = t.iov(t.a().attr.cap.am.max_zcopy);
    EXPECT_EQ(uct_ep_am_zcopy(t.ep, 0, "head", 4, &iov, 1, 0, &comp), INVALID);
    iov = t.iov(1);
    EXPECT_EQ(uct_ep_am_zcopy(t.ep, 0, t.local.data(),
                              static_cast<unsigned>(t.a().attr.cap.am.max_hdr + 1), &iov, 1, 0,
                              &comp),
              INVALID);
}
void am_handlers(uct_coverage &t)
{
    EXPECT_EQ(uct_iface_set_am_handler(t.b().iface, 3, entity::on_message, &t.b().slots[3],
                                       UCT_CB_FLAG_ASYNC),
              UCS_OK);
    EXPECT_EQ(uct_iface_set_am_tracer(t.b().iface, nullptr, nullptr), UCS_OK);
    t.b().keep = true;
    am_short(t);
    t.b().keep = false;
    // Messages of connectionless cores may share a buffer: then none can be kept.
    const std::string transport = uct_coverage::GetParam();
    if (t.b().kept.empty() && (t.b().attr.cap.flags & UCT_IFACE_FLAG_INTER_NODE) &&
        transport != "tcp" && transport != "verbs") {
        return;
    }
    ASSERT_EQ(t.b().kept.size(), 1u);
    uct_iface_release_desc(t.b().kept.back());
    t.b().kept.clear();
}
void bad_am_handlers(uct_coverage &t)
{
    EXPECT_EQ(uct_iface_set_am_handler(t.a().iface, UCT_AM_ID_MAX, nullptr, nullptr, 0), INVALID);
    EXPECT_EQ(uct_iface_set_am_handler(t.a().iface, 0, nullptr, nullptr, 1u << 20), INVALID);
    EXPECT_EQ(uct_iface_set_am_handler(nullptr, 0, nullptr, nullptr, 0), INVALID);
    EXPECT_EQ(uct_iface_set_am_tracer(nullptr, nullptr, nullptr), INVALID);
}

// ---- Put, get, atomics

void puts_and_gets(uct_coverage &t)
{
    bool has;
    uct_rkey_t key = t.key.rkey;
    uct_iov_t iov = t.iov(64);
    std::string got;
    t.unless(UCT_IFACE_FLAG_PUT_SHORT, &has,
             [&] { return uct_ep_put_short(t.ep, "s", 1, t.address, key); });
    if (has) {
        EXPECT_EQ(t.post([&] { return uct_ep_put_short(t.ep, "s", 1, t.address, key); }), UCS_OK);
    }
    t.unless(UCT_IFACE_FLAG_PUT_BCOPY, &has,
             [&] { return uct_ep_put_bcopy(t.ep, pack_word, nullptr, t.address + 1, key); });
    if (has) {
        EXPECT_EQ(
            t.post([&] { return uct_ep_put_bcopy(t.ep, pack_word, nullptr, t.address + 1, key); }),
            6);
    }
    t.quiesce();
    if (has) {
        EXPECT_EQ(t.target.substr(0, 7), "spacked");
    }
    t.unless(UCT_IFACE_FLAG_PUT_ZCOPY, &has,
             [&] { return uct_ep_put_zcopy(t.ep, &iov, 1, t.address, key, nullptr); });
    if (has) {
        t.run([&](uct_completion_t *comp) {
            return uct_ep_put_zcopy(t.ep, &iov, 1, t.address, key, comp);
        });
        EXPECT_EQ(t.target.substr(0, 64), t.local.substr(0, 64));
    }
    char byte = 0;
    t.unless(UCT_IFACE_FLAG_GET_SHORT, &has,
             [&] { return uct_ep_get_short(t.ep, &byte, 1, t.address, key); });
    if (has) {
        EXPECT_EQ(t.post([&] { return uct_ep_get_short(t.ep, &byte, 1, t.address, key); }), UCS_OK);
        EXPECT_EQ(byte, t.target[0]);
    }
    t.unless(UCT_IFACE_FLAG_GET_BCOPY, &has,
             [&] { return uct_ep_get_bcopy(t.ep, unpack_word, &got, 8, t.address, key, nullptr); });
    if (has) {
        t.run([&](uct_completion_t *comp) {
            return uct_ep_get_bcopy(t.ep, unpack_word, &got, 8, t.address, key, comp);
        });
        EXPECT_EQ(got, t.target.substr(0, 8));
    }
    t.unless(UCT_IFACE_FLAG_GET_ZCOPY, &has,
             [&] { return uct_ep_get_zcopy(t.ep, &iov, 1, t.address, key, nullptr); });
    if (has) {
        t.run([&](uct_completion_t *comp) {
            return uct_ep_get_zcopy(t.ep, &iov, 1, t.address + 100, key, comp);
        });
        EXPECT_EQ(t.local.substr(0, 64), t.target.substr(100, 64));
    }
}

void bad_puts_and_gets(uct_coverage &t)
{
    if (!t.a().has(UCT_IFACE_FLAG_PUT_ZCOPY | UCT_IFACE_FLAG_GET_ZCOPY)) {
        return; // refused whole, as puts_and_gets() saw
    }
    uct_completion_t comp = not_called();
    uct_rkey_t key = t.key.rkey;
    std::vector<uct_iov_t> many(t.a().attr.cap.put.max_iov + 1, t.iov(1));
    // Memory of the own process is reached by loads and stores, which have no limits.
    std::string transport = t.a().resource.tl_name;
    bool direct = t.alone() || transport == "sm" || transport == "shm";
    if (!direct) {
        EXPECT_EQ(uct_ep_put_short(t.ep, t.local.data(),
                                   static_cast<unsigned>(t.a().attr.cap.put.max_short + 1),
                                   t.address, key),
                  INVALID);
        EXPECT_EQ(uct_ep_get_bcopy(t.ep, unpack_word, nullptr, t.a().attr.cap.get.max_bcopy + 1,
                                   t.address, key, &comp),
                  INVALID);
        EXPECT_EQ(uct_ep_put_zcopy(t.ep, many.data(), many.size(), t.address, key, &comp), INVALID);
        EXPECT_EQ(uct_ep_get_zcopy(t.ep, many.data(), many.size(), t.address, key, &comp), INVALID);
        if (t.a().has(UCT_IFACE_FLAG_GET_SHORT)) {
            EXPECT_EQ(uct_ep_get_short(t.ep, t.local.data(),
                                       static_cast<unsigned>(t.a().attr.cap.get.max_short + 1),
                                       t.address, key),
                      INVALID);
        }
    }
}

template <class T>
void atomics_of(uct_coverage &t, uint64_t post, uint64_t fetch)
{
    constexpr bool wide = sizeof(T) == 8;
    uct_rkey_t key = t.key.rkey;
    memset(t.target.data(), 0, 8);
    auto value = [&] {
        T now;
        memcpy(&now, t.target.data(), sizeof(T));
        return now;
    };
    auto add = [&] {
        if constexpr (wide) {
            return uct_ep_atomic64_post(t.ep, UCT_ATOMIC_OP_ADD, 5, t.address, key);
        } else {
            return uct_ep_atomic32_post(t.ep, UCT_ATOMIC_OP_ADD, 5, t.address, key);
        }
    };
    T result = 99;
    auto fadd = [&](uct_completion_t *comp) {
        if constexpr (wide) {
            return uct_ep_atomic64_fetch(t.ep, UCT_ATOMIC_OP_ADD, 2, &result, t.address, key, comp);
        } else {
            return uct_ep_atomic32_fetch(t.ep, UCT_ATOMIC_OP_ADD, 2, &result, t.address, key, comp);
        }
    };
    auto cswap = [&](T compare, uct_completion_t *comp) {
        if constexpr (wide) {
            return uct_ep_atomic_cswap64(t.ep, compare, 8, t.address, key, &result, comp);
        } else {
            return uct_ep_atomic_cswap32(t.ep, compare, 8, t.address, key, &result, comp);
        }
    };
    T expected = 0;
    if (post & UCS_BIT(UCT_ATOMIC_OP_ADD)) {
        EXPECT_EQ(t.post(add), UCS_OK);
        t.quiesce();
        expected = 5;
        EXPECT_EQ(value(), expected);
    } else {
        EXPECT_EQ(add(), UCS_ERR_UNSUPPORTED);
    }
    if (fetch & UCS_BIT(UCT_ATOMIC_OP_ADD)) {
        t.run(fadd);
        EXPECT_EQ(result, expected);
        expected += 2;
        EXPECT_EQ(value(), expected);
    } else {
        EXPECT_EQ(fadd(nullptr), UCS_ERR_UNSUPPORTED);
    }
    if (fetch & UCS_BIT(UCT_ATOMIC_OP_CSWAP)) {
        t.run([&](uct_completion_t *comp) { return cswap(expected, comp); });
        EXPECT_EQ(result, expected);
        EXPECT_EQ(value(), T{8});
    } else {
        EXPECT_EQ(cswap(0, nullptr), UCS_ERR_UNSUPPORTED);
    }
}

void atomics(uct_coverage &t)
{
    const auto &cap = t.a().attr.cap;
    atomics_of<uint32_t>(t, cap.atomic32.op_flags, cap.atomic32.fop_flags);
    atomics_of<uint64_t>(t, cap.atomic64.op_flags, cap.atomic64.fop_flags);
}

void bad_atomics(uct_coverage &t)
{
    uct_completion_t comp = not_called();
    uint32_t small;
    uint64_t large;
    uct_rkey_t key = t.key.rkey;
    auto refused = [](ucs_status_t status, bool has) {
        EXPECT_EQ(status, has ? INVALID : UCS_ERR_UNSUPPORTED);
    };
    const auto &c32 = t.a().attr.cap.atomic32;
    const auto &c64 = t.a().attr.cap.atomic64;
    constexpr uint64_t add = UCS_BIT(UCT_ATOMIC_OP_ADD);
    constexpr uint64_t cswap = UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    uint64_t odd = t.address + 1;
    refused(uct_ep_atomic32_post(t.ep, UCT_ATOMIC_OP_ADD, 1, odd, key), c32.op_flags & add);
    refused(uct_ep_atomic64_post(t.ep, UCT_ATOMIC_OP_ADD, 1, odd, key), c64.op_flags & add);
    refused(uct_ep_atomic32_fetch(t.ep, UCT_ATOMIC_OP_ADD, 1, &small, odd, key, &comp),
            c32.fop_flags & add);
    refused(uct_ep_atomic64_fetch(t.ep, UCT_ATOMIC_OP_ADD, 1, &large, odd, key, &comp),
            c64.fop_flags & add);
    refused(uct_ep_atomic_cswap32(t.ep, 0, 1, odd, key, &small, &comp), c32.fop_flags & cswap);
    refused(uct_ep_atomic_cswap64(t.ep, 0, 1, odd, key, &large, &comp), c64.fop_flags & cswap);
}

// ---- Tag matching: what matches is in uct_tag_test.cc. Without the flags every call is refused,
// and no core has a rendezvous.

void tags(uct_coverage &t)
{
    uct_iov_t iov = t.iov(1);
    uct_tag_context_t context{};
    EXPECT_EQ(UCS_PTR_STATUS(uct_ep_tag_rndv_zcopy(t.ep, 1, "h", 1, &iov, 1, 0, nullptr)),
              UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_ep_tag_rndv_cancel(t.ep, nullptr), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_ep_tag_rndv_request(t.ep, 1, "h", 1, 0), UCS_ERR_UNSUPPORTED);
    EXPECT_FALSE(t.a().has(UCT_IFACE_FLAG_TAG_RNDV_ZCOPY));
    if (t.a().has(UCT_IFACE_FLAG_TAG_EAGER_SHORT)) {
        return;
    }
    EXPECT_EQ(uct_ep_tag_eager_short(t.ep, 1, "x", 1), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_ep_tag_eager_bcopy(t.ep, 1, 0, pack_word, nullptr, 0),
              ssize_t{UCS_ERR_UNSUPPORTED});
    EXPECT_EQ(uct_ep_tag_eager_zcopy(t.ep, 1, 0, &iov, 1, 0, nullptr), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_iface_tag_recv_zcopy(t.a().iface, 1, 1, &iov, 1, &context), UCS_ERR_UNSUPPORTED);
    EXPECT_EQ(uct_iface_tag_recv_cancel(t.a().iface, &context, 1), UCS_ERR_UNSUPPORTED);
}

// ---- Interfaces

void interfaces(uct_coverage &t)
{
    uct_iface_h iface = t.b().iface;
    uct_iface_attr_t attr;
    EXPECT_EQ(uct_iface_query(iface, &attr), UCS_OK);
    std::vector<char> device(attr.device_addr_len + 1, 'z');
    std::vector<char> address(attr.iface_addr_len + 1, 'z');
    auto *dev = reinterpret_cast<uct_device_addr_t *>(device.data());
    auto *own = reinterpret_cast<uct_iface_addr_t *>(address.data());
    EXPECT_EQ(uct_iface_get_device_address(iface, dev), UCS_OK);
    EXPECT_EQ(uct_iface_get_address(iface, own), UCS_OK);
    EXPECT_EQ(device.back(), 'z');
    EXPECT_EQ(address.back(), 'z');
    EXPECT_TRUE(uct_iface_is_reachable(t.a().iface, dev, own));
    int fd = -1;
    bool has_fd = attr.cap.event_flags & UCT_IFACE_FLAG_EVENT_FD;
    EXPECT_EQ(uct_iface_event_fd_get(iface, &fd), has_fd ? UCS_OK : UCS_ERR_UNSUPPORTED);
    EXPECT_TRUE(t.until([&] {
        return uct_iface_event_arm(iface, UCT_EVENT_RECV) ==
               (has_fd ? UCS_OK : UCS_ERR_UNSUPPORTED);
    }));
    uct_iface_progress_disable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_iface_progress(iface);
    uct_iface_progress_enable(iface, UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    EXPECT_EQ(uct_iface_fence(iface, 0), UCS_OK);
    EXPECT_TRUE(t.until([&] { return uct_iface_flush(iface, 0, nullptr) == UCS_OK; }));
    // uct_iface_open() and uct_iface_close() of one more
    entity another(t.a().md_attr.component_name, {});
    EXPECT_NE(another.iface, nullptr);
}

void bad_interfaces(uct_coverage &t)
{
    uct_iface_h iface = t.a().iface;
    uct_iface_h none = nullptr;
    uct_iface_params_t params{};
    uct_iface_config_t *config = nullptr;
    ASSERT_EQ(uct_md_iface_config_read(t.a().md, nullptr, nullptr, nullptr, &config), UCS_OK);
    EXPECT_EQ(uct_iface_open(t.a().md, t.a().worker, &params, config, &none), INVALID);
    params.field_mask = UCT_IFACE_PARAM_FIELD_OPEN_MODE;
    EXPECT_EQ(uct_iface_open(t.a().md, t.a().worker, &params, config, &none), INVALID);
    params.open_mode = UCT_IFACE_OPEN_MODE_DEVICE;
    EXPECT_EQ(uct_iface_open(t.a().md, t.a().worker, &params, config, &none), INVALID);
    params.mode.device = {"no such", "device"};
    EXPECT_EQ(uct_iface_open(t.a().md, t.a().worker, &params, config, &none), UCS_ERR_NO_DEVICE);
    EXPECT_EQ(none, nullptr);
    uct_config_release(config);
    EXPECT_EQ(uct_iface_query(iface, nullptr), INVALID);
    EXPECT_EQ(uct_iface_get_device_address(iface, nullptr), INVALID);
    EXPECT_EQ(uct_iface_get_address(iface, nullptr), INVALID);
    EXPECT_EQ(uct_iface_is_reachable(nullptr, nullptr, nullptr), 0);
    std::vector<char> garbage(256, 'g');
    EXPECT_EQ(uct_iface_is_reachable(iface, reinterpret_cast<uct_device_addr_t *>(garbage.data()),
                                     reinterpret_cast<uct_iface_addr_t *>(garbage.data())),
              0);
    EXPECT_EQ(uct_iface_event_fd_get(iface, nullptr), INVALID);
    EXPECT_EQ(uct_iface_event_arm(nullptr, 0), INVALID);
    EXPECT_EQ(uct_iface_flush(iface, UCT_FLUSH_FLAG_CANCEL, nullptr), UCS_ERR_UNSUPPORTED);
    uct_iface_progress_disable(iface, 0); // nothing asked
    EXPECT_TRUE(t.until([&] { return uct_iface_progress(iface) == 0; }));
    uct_iface_close(nullptr);
}

// ---- Endpoints

struct request {
    uct_pending_req_t own;
    int calls;
};

void endpoints(uct_coverage &t)
{
    uct_ep_h ep = t.a().connect(t.b()); // uct_ep_create() to an interface
    ASSERT_NE(ep, nullptr);
    std::vector<char> address(t.a().attr.ep_addr_len + 1, 'z');
    EXPECT_EQ(uct_ep_get_address(ep, reinterpret_cast<uct_ep_addr_t *>(address.data())), UCS_OK);
    EXPECT_EQ(address.back(), 'z');
    EXPECT_EQ(uct_ep_check(ep, 0, nullptr), UCS_OK);
    uct_completion_t unused{[](uct_completion_t *c) { c->status = UCS_ERR_IO_ERROR; }, 1, UCS_OK};
    EXPECT_EQ(uct_ep_check(ep, 0, &unused), UCS_OK); // the answer is known at once
    EXPECT_EQ(unused.count, 1);
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    params.iface = t.a().iface;
    uct_ep_h other = nullptr;
    ASSERT_EQ(uct_ep_create(&params, &other), UCS_OK);
    // b's endpoints have their interface's address
    EXPECT_EQ(uct_ep_connect_to_ep(
                  other, reinterpret_cast<uct_device_addr_t *>(t.b().device_address.data()),
                  reinterpret_cast<uct_ep_addr_t *>(t.b().iface_address.data())),
              UCS_OK);
    size_t before = t.messages();
    EXPECT_EQ(t.post([&] { return uct_ep_am_short(other, 1, 0, nullptr, 0); }), UCS_OK);
    EXPECT_TRUE(t.until([&] { return t.messages() == before + 1; }));
    EXPECT_EQ(uct_ep_fence(ep, 0), UCS_OK);
    EXPECT_TRUE(t.until([&] { return uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, nullptr) == UCS_OK; }));
    uct_ep_destroy(other);
    t.a().destroy(ep);
    uct_completion_t comp{nullptr, 1, UCS_OK};
    uct_completion_update_status(&comp, UCS_ERR_CANCELED);
    EXPECT_EQ(comp.status, UCS_ERR_CANCELED);
}

// On an endpoint that is not connected yet nothing can be sent, so a request has to wait.
void pending(uct_coverage &t)
{
    uct_ep_params_t params{};
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    params.iface = t.a().iface;
    uct_ep_h ep = nullptr;
    ASSERT_EQ(uct_ep_create(&params, &ep), UCS_OK);
    request purged{};
    request run{};
    purged.own.func = run.own.func = [](uct_pending_req_t *self) {
        ++reinterpret_cast<request *>(self)->calls;
        return UCS_OK;
    };
    EXPECT_EQ(uct_ep_am_short(ep, 1, 0, nullptr, 0), UCS_ERR_NO_RESOURCE);
    EXPECT_EQ(uct_ep_pending_add(ep, &purged.own, 0), UCS_OK);
    uct_ep_pending_purge(
        ep, [](uct_pending_req_t *self, void *arg) { EXPECT_EQ(self, arg); }, &purged.own);
    EXPECT_EQ(uct_ep_pending_add(ep, &run.own, 0), UCS_OK);
    EXPECT_EQ(
        uct_ep_connect_to_ep(ep, reinterpret_cast<uct_device_addr_t *>(t.b().device_address.data()),
                             reinterpret_cast<uct_ep_addr_t *>(t.b().iface_address.data())),
        UCS_OK);
    EXPECT_TRUE(t.until([&] { return run.calls == 1; }));
    EXPECT_EQ(purged.calls, 0);
    uct_ep_destroy(ep);
}

void bad_pending(uct_coverage &t)
{
    request r{};
    r.own.func = [](uct_pending_req_t *) {
        ADD_FAILURE() << "a request that was not queued";
        return UCS_OK;
    };
    // There is room: not taken.
    ASSERT_TRUE(t.until([&] { return uct_ep_pending_add(t.ep, &r.own, 0) == UCS_ERR_BUSY; }));
    uct_ep_pending_purge(t.ep, nullptr, nullptr); // none is there
}

void bad_endpoints(uct_coverage &t)
{
    uct_ep_h none = nullptr;
    uct_ep_params_t params{};
    EXPECT_EQ(uct_ep_create(nullptr, &none), INVALID);
    EXPECT_EQ(uct_ep_create(&params, &none), INVALID);
    params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR;
    params.iface = t.a().iface;
    EXPECT_EQ(uct_ep_create(&params, &none), INVALID);
    std::vector<char> garbage(256, 'g');
    params.field_mask |= UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.dev_addr = reinterpret_cast<uct_device_addr_t *>(garbage.data());
    params.iface_addr = reinterpret_cast<uct_iface_addr_t *>(garbage.data());
    ucs_status_t status = uct_ep_create(&params, &none);
    EXPECT_TRUE(status == UCS_ERR_INVALID_ADDR || status == UCS_ERR_UNREACHABLE)
        << ucs_status_string(status);
    EXPECT_EQ(none, nullptr);
    EXPECT_EQ(uct_ep_get_address(t.ep, nullptr), INVALID);
    EXPECT_EQ(uct_ep_connect_to_ep(t.ep, nullptr, nullptr), INVALID);
    EXPECT_EQ(uct_ep_check(t.ep, 1, nullptr), INVALID);
    EXPECT_EQ(uct_ep_check(nullptr, 0, nullptr), INVALID);
    uct_ep_destroy(nullptr);
    // A cancelled endpoint takes nothing more.
    uct_ep_h ep = t.a().connect(t.b());
    EXPECT_EQ(uct_ep_flush(ep, UCT_FLUSH_FLAG_CANCEL, nullptr), UCS_OK);
    EXPECT_EQ(uct_ep_fence(ep, 0), UCS_ERR_CANCELED);
    EXPECT_EQ(uct_ep_flush(ep, UCT_FLUSH_FLAG_LOCAL, nullptr), UCS_ERR_CANCELED);
    EXPECT_EQ(uct_ep_check(ep, 0, nullptr), UCS_ERR_CANCELED);
    t.a().destroy(ep);
    uct_completion_t comp{nullptr, 1, UCS_ERR_IO_ERROR};
    uct_completion_update_status(&comp, UCS_ERR_CANCELED);
    EXPECT_EQ(comp.status, UCS_ERR_IO_ERROR); // the first stays
}

const row rows[] = {
    {"uct_query_components", components, bad_components},
    {"uct_release_component_list", components, bad_components},
    {"uct_component_query", components, bad_components},
    {"uct_md_config_read", configuration, bad_configuration},
    {"uct_md_iface_config_read", configuration, bad_configuration},
    {"uct_cm_config_read", configuration, bad_configuration},
    {"uct_config_get", configuration, bad_configuration},
    {"uct_config_modify", configuration, bad_configuration},
    {"uct_config_release", configuration, bad_configuration},
    {"uct_worker_create", workers, bad_workers},
    {"uct_worker_destroy", workers, bad_workers},
    {"uct_worker_progress", workers, bad_workers},
    {"uct_worker_progress_register_safe", workers, bad_workers},
    {"uct_worker_progress_unregister_safe", workers, bad_workers},
    {"uct_cm_open", connections, bad_connections},
    {"uct_cm_close", connections, bad_connections},
    {"uct_cm_query", connections, bad_connections},
    {"uct_cm_client_ep_conn_notify", connections, bad_connections},
    {"uct_ep_connect", connections, bad_connections},
    {"uct_ep_disconnect", connections, bad_connections},
    {"uct_listener_create", connections, bad_connections},
    {"uct_listener_destroy", connections, bad_connections},
    {"uct_listener_query", connections, bad_connections},
    {"uct_listener_reject", connections, bad_connections},
    {"uct_iface_accept", requests, bad_connections},
    {"uct_iface_reject", requests, bad_connections},
    {"uct_md_is_sockaddr_accessible", requests, bad_connections},
    {"uct_md_open", domains, bad_domains},
    {"uct_md_close", domains, bad_domains},
    {"uct_md_query", domains, bad_domains},
    {"uct_md_query_v2", domains, bad_domains},
    {"uct_md_query_tl_resources", domains, bad_domains},
    {"uct_release_tl_resource_list", domains, bad_domains},
    {"uct_md_mem_reg", registration, bad_registration},
    {"uct_md_mem_reg_v2", registration, bad_registration},
    {"uct_md_mem_dereg", registration, bad_registration},
    {"uct_md_mem_advise", registration, bad_registration},
    {"uct_md_mem_query", registration, bad_registration},
    {"uct_md_detect_memory_type", registration, bad_registration},
    {"uct_md_mkey_pack", registration, bad_registration},
    {"uct_md_mkey_pack_v2", registration, bad_registration},
    {"uct_rkey_unpack", registration, bad_registration},
    {"uct_rkey_release", registration, bad_registration},
    {"uct_rkey_ptr", allocation, bad_registration},
    {"uct_mem_alloc", allocation, bad_allocation},
    {"uct_mem_free", allocation, bad_allocation},
    {"uct_iface_mem_alloc", allocation, bad_allocation},
    {"uct_iface_mem_free", allocation, bad_allocation},
    {"uct_iface_set_am_handler", am_handlers, bad_am_handlers},
    {"uct_iface_set_am_tracer", am_handlers, bad_am_handlers},
    {"uct_iface_release_desc", am_handlers, bad_am_handlers},
    {"uct_ep_am_short", am_short, bad_am_short},
    {"uct_ep_am_short_iov", am_short_iov, bad_am_short_iov},
    {"uct_ep_am_bcopy", am_bcopy, bad_am_bcopy},
    {"uct_ep_am_zcopy", am_zcopy, bad_am_zcopy},
    {"uct_ep_put_short", puts_and_gets, bad_puts_and_gets},
    {"uct_ep_put_bcopy", puts_and_gets, bad_puts_and_gets},
    {"uct_ep_put_zcopy", puts_and_gets, bad_puts_and_gets},
    {"uct_ep_get_short", puts_and_gets, bad_puts_and_gets},
    {"uct_ep_get_bcopy", puts_and_gets, bad_puts_and_gets},
    {"uct_ep_get_zcopy", puts_and_gets, bad_puts_and_gets},
    {"uct_ep_atomic32_post", atomics, bad_atomics},
    {"uct_ep_atomic64_post", atomics, bad_atomics},
    {"uct_ep_atomic32_fetch", atomics, bad_atomics},
    {"uct_ep_atomic64_fetch", atomics, bad_atomics},
    {"uct_ep_atomic_cswap32", atomics, bad_atomics},
    {"uct_ep_atomic_cswap64", atomics, bad_atomics},
    {"uct_ep_tag_eager_short", tags, tags},
    {"uct_ep_tag_eager_bcopy", tags, tags},
    {"uct_ep_tag_eager_zcopy", tags, tags},
    {"uct_ep_tag_rndv_zcopy", tags, tags},
    {"uct_ep_tag_rndv_cancel", tags, tags},
    {"uct_ep_tag_rndv_request", tags, tags},
    {"uct_iface_tag_recv_zcopy", tags, tags},
    {"uct_iface_tag_recv_cancel", tags, tags},
    {"uct_iface_open", interfaces, bad_interfaces},
    {"uct_iface_close", interfaces, bad_interfaces},
    {"uct_iface_query", interfaces, bad_interfaces},
    {"uct_iface_get_device_address", interfaces, bad_interfaces},
    {"uct_iface_get_address", interfaces, bad_interfaces},
    {"uct_iface_is_reachable", interfaces, bad_interfaces},
    {"uct_iface_event_fd_get", interfaces, bad_interfaces},
    {"uct_iface_event_arm", interfaces, bad_interfaces},
    {"uct_iface_progress", interfaces, bad_interfaces},
    {"uct_iface_progress_enable", interfaces, bad_interfaces},
    {"uct_iface_progress_disable", interfaces, bad_interfaces},
    {"uct_iface_flush", interfaces, bad_interfaces},
    {"uct_iface_fence", interfaces, bad_interfaces},
    {"uct_ep_create", endpoints, bad_endpoints},
    {"uct_ep_destroy", endpoints, bad_endpoints},
    {"uct_ep_get_address", endpoints, bad_endpoints},
    {"uct_ep_connect_to_ep", endpoints, bad_endpoints},
    {"uct_ep_check", endpoints, bad_endpoints},
    {"uct_ep_flush", endpoints, bad_endpoints},
    {"uct_ep_fence", endpoints, bad_endpoints},
    {"uct_completion_update_status", endpoints, bad_endpoints},
    {"uct_ep_pending_add", pending, bad_pending},
    {"uct_ep_pending_purge", pending, bad_pending},
};

// Each scenario once, though several functions may name it.
void run_all(uct_coverage &t, act row::*which)
{
    std::set<act> done;
    for (const row &r : rows) {
        if (done.insert(r.*which).second) {
            SCOPED_TRACE(r.function);
            (r.*which)(t);
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
    }
}

TEST_P(uct_coverage, 218_tag_calls_are_refused_where_no_flag_has_them)
{
    tags(*this);
}

TEST_P(uct_coverage, every_function_with_good_input)
{
    run_all(*this, &row::good);
}

TEST_P(uct_coverage, every_function_with_bad_input)
{
    ucs::log::set_sink([](ucs::log::level, const char *, int, const char *) {});
    run_all(*this, &row::bad);
    ucs::log::set_sink(nullptr);
    am_short(*this); // and nothing is broken
}

UCT_INSTANTIATE(uct_coverage);

TEST(uct_coverage_list, every_public_function_has_a_row)
{
    const std::map<std::string, bool> listed = support_table::read("uct");
    ASSERT_FALSE(listed.empty()) << "fabtests-ext/abi/support.tsv was not found";
    std::set<std::string> covered;
    for (const row &r : rows) {
        EXPECT_TRUE(covered.insert(r.function).second) << r.function << " twice";
        EXPECT_TRUE(listed.count(r.function)) << r.function << " is not public";
    }
    for (const auto &[function, works] : listed) {
        EXPECT_TRUE(covered.count(function)) << function << " has no row";
    }
}

TEST(uct_coverage_list, every_item_of_the_behaviours_has_a_case)
{
    std::set<int> items;
    const testing::UnitTest &all = *testing::UnitTest::GetInstance();
    for (int s = 0; s < all.total_test_suite_count(); ++s) {
        const testing::TestSuite &suite = *all.GetTestSuite(s);
        for (int i = 0; i < suite.total_test_count(); ++i) {
            items.insert(atoi(suite.GetTestInfo(i)->name()));
        }
    }
    for (int item = 197; item <= 218; ++item) {
        EXPECT_TRUE(items.count(item)) << "no case for " << item;
    }
}

} // namespace
} // namespace uct_conformance
