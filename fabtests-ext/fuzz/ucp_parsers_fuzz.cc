// SPDX-License-Identifier: BSD-3-Clause
// What arrives before there is an endpoint: worker addresses (with their checks made good, so that
// the fuzzer gets behind them), the private data of connections, and the connection manager's
// messages. The first byte of an input says which.
#include "fabtests-ext/fuzz/mutate.h"
#include "fabtests-ext/fuzz/target.h"
#include "ucp/connect/address.h"
#include "ucp/connect/cm.h"
#include "uct/ofi/cm/wire.h"

#include <memory>

namespace {

using fuzz::expect;
using fuzz::message;

enum kind : uint8_t { address, client, server, manager, kinds };

void parse_address(std::vector<uint8_t> &bytes)
{
    if (bytes.size() >= ucp::ADDRESS_HEAD && bytes.size() <= UINT16_MAX) {
        ucp::seal_address(bytes);
    }
    auto block = std::make_unique<uint8_t[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), block.get());
    ucp::unpacked_address out;
    if (ucp::unpack_address(block.get(), bytes.size(), &out) == UCS_OK) {
        size_t total = out.name.size();
        for (const ucp::address_resource &r : out.resources) {
            total += r.tl_name.size() + r.device_addr.size() + r.iface_addr.size();
        }
        expect(total <= bytes.size(), "the parts of an address are larger than the whole");
    }
}

// The address and the greeting of a hello lie inside of it.
template <class Hello>
void expect_inside(const Hello &hello, const std::vector<uint8_t> &data)
{
    expect(hello.address >= data.data(), "an address begins before its hello");
    expect(hello.address + hello.address_length <= data.data() + data.size(),
           "an address ends behind its hello");
    expect(hello.greeting.data() + hello.greeting.size() <= data.data() + data.size(),
           "a greeting ends behind its hello");
}

void parse_hello(std::vector<uint8_t> &bytes, bool from_client)
{
    bytes.shrink_to_fit();
    ucp::client_hello c;
    ucp::server_hello s;
    if (from_client && ucp::parse_client_hello(bytes, &c) == UCS_OK) {
        expect_inside(c, bytes);
    } else if (!from_client && ucp::parse_server_hello(bytes, &s) == UCS_OK) {
        expect_inside(s, bytes);
    }
}

void parse_manager(const std::vector<uint8_t> &bytes)
{
    auto block = std::make_unique<uint8_t[]>(bytes.size());
    std::copy(bytes.begin(), bytes.end(), block.get());
    uct::ofi::cm_wire::message m;
    if (uct::ofi::cm_wire::parse(block.get(), bytes.size(), m) && m.chunk_len > 0) {
        const auto *chunk = static_cast<const uint8_t *>(m.chunk);
        expect(chunk >= block.get() && chunk + m.chunk_len <= block.get() + bytes.size(),
               "a chunk lies outside of its message");
    }
}

void put(std::vector<uint8_t> *to, std::initializer_list<unsigned> bytes)
{
    for (unsigned b : bytes) {
        to->push_back(static_cast<uint8_t>(b));
    }
}

// An address with a host, a door and one transport.
std::vector<uint8_t> valid_address()
{
    std::vector<uint8_t> a;
    put(&a, {0x75, 0x78, ucp::address_version, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}); // head
    a.resize(a.size() + 12, 1); // uuid, incarnation
    put(&a, {2, 'm', 'e'});     // name
    a.resize(a.size() + 20, 2); // host
    a.resize(a.size() + 10, 3); // door: number, port
    put(&a, {2, 4, 127, 0, 0, 1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
    put(&a, {1, 3, 't', 'c', 'p', 0, 0, 16, 0, 0, 2, 1, 2, 4, 1, 2, 3, 4});
    ucp::seal_address(a);
    return a;
}

std::vector<uint8_t> valid_hello(size_t head)
{
    std::vector<uint8_t> address = valid_address(), hello(head);
    hello[0] = ucp::hello_protocol.version;
    hello[4] = static_cast<uint8_t>(address.size());
    hello[6] = 5;
    hello.insert(hello.end(), address.begin(), address.end());
    hello.insert(hello.end(), {'h', 'e', 'l', 'l', 'o'});
    return hello;
}

std::vector<uint8_t> valid_manager()
{
    using namespace uct::ofi::cm_wire;
    std::vector<uint8_t> m(message_max);
    m.resize(write(reinterpret_cast<char *>(m.data()), {type::connect, 5, 0, "hello", 5}));
    return m;
}

const std::vector<message> &templates()
{
    static const std::vector<message> all = {{address, valid_address()},
                                             {client, valid_hello(32)},
                                             {server, valid_hello(16)},
                                             {manager, valid_manager()}};
    return all;
}

} // namespace

extern "C" int LLVMFuzzerInitialize(int *, char ***)
{
    fuzz::silence_log();
    ucp::unpacked_address out;
    std::vector<uint8_t> good = valid_address();
    expect(ucp::unpack_address(good.data(), good.size(), &out) == UCS_OK, "the valid address");
    ucp::client_hello c;
    ucp::server_hello s;
    expect(ucp::parse_client_hello(templates()[client].bytes, &c) == UCS_OK, "a client's hello");
    expect(ucp::parse_server_hello(templates()[server].bytes, &s) == UCS_OK, "a server's hello");
    return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    return fuzz::mutator(seed, templates(), 1).mutate(data, size, max);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (message &m : fuzz::parse(data, size)) {
        switch (m.kind % kinds) {
        case address:
            parse_address(m.bytes);
            break;
        case client:
        case server:
            parse_hello(m.bytes, m.kind % kinds == client);
            break;
        default:
            parse_manager(m.bytes);
        }
    }
    return 0;
}
