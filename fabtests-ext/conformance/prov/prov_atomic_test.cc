// SPDX-License-Identifier: BSD-3-Clause
//
// Atomics through the provider between two processes: every operation on every type in each of its
// forms, against results worked out here; what is refused; counters; two initiators that change one
// value.
#include "fabtests-ext/common/fabric_app.h"
#include "fabtests-ext/common/transports.h"

#include <complex>
#include <gtest/gtest.h>
#include <limits>

using namespace app;

namespace {

enum form { plain, fetch, compare, forms };
constexpr uint64_t form_flags[forms] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};

// What fi_atomic(3) says of an operation: the value afterwards.
template <class T>
T outcome(fi_op op, T v, T x, T c)
{
    constexpr bool complex = !std::is_arithmetic_v<T>;
    constexpr bool integer = std::is_integral_v<T>;
    switch (op) {
    case FI_MIN:
        if constexpr (!complex) {
            return std::min(v, x);
        }
        break;
    case FI_MAX:
        if constexpr (!complex) {
            return std::max(v, x);
        }
        break;
    case FI_SUM: // unsigned arithmetic: integers wrap
        if constexpr (integer) {
            return static_cast<T>(static_cast<uint64_t>(v) + static_cast<uint64_t>(x));
        }
        return v + x;
    case FI_PROD:
        if constexpr (integer) {
            return static_cast<T>(static_cast<uint64_t>(v) * static_cast<uint64_t>(x));
        }
        return v * x;
    case FI_LOR:
        return v != T(0) || x != T(0) ? T(1) : T(0);
    case FI_LAND:
        return v != T(0) && x != T(0) ? T(1) : T(0);
    case FI_LXOR:
        return (v != T(0)) != (x != T(0)) ? T(1) : T(0);
    case FI_BOR:
        if constexpr (integer) {
            return static_cast<T>(v | x);
        }
        break;
    case FI_BAND:
        if constexpr (integer) {
            return static_cast<T>(v & x);
        }
        break;
    case FI_BXOR:
        if constexpr (integer) {
            return static_cast<T>(v ^ x);
        }
        break;
    case FI_ATOMIC_READ:
        return v;
    case FI_ATOMIC_WRITE:
        return x;
    case FI_CSWAP:
        return c == v ? x : v;
    case FI_CSWAP_NE:
        return c != v ? x : v;
    case FI_CSWAP_LE:
        if constexpr (!complex) {
            return c <= v ? x : v;
        }
        break;
    case FI_CSWAP_LT:
        if constexpr (!complex) {
            return c < v ? x : v;
        }
        break;
    case FI_CSWAP_GE:
        if constexpr (!complex) {
            return c >= v ? x : v;
        }
        break;
    case FI_CSWAP_GT:
        if constexpr (!complex) {
            return c > v ? x : v;
        }
        break;
    case FI_MSWAP:
        if constexpr (integer) {
            return static_cast<T>((x & c) | (v & ~c));
        }
        break;
    default:
        break;
    }
    fprintf(stderr, "operation %d is not defined for this type\n", op);
    _exit(1);
}

// Which there are: logic on everything, order on what has one, bits on integers.
bool defined(fi_op op, bool integer, bool complex)
{
    switch (op) {
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
    case FI_MSWAP:
        return integer;
    case FI_MIN:
    case FI_MAX:
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT:
        return !complex;
    default:
        return true;
    }
}

bool has_form(fi_op op, form f)
{
    if (op >= FI_CSWAP) {
        return f == compare;
    }
    if (op == FI_ATOMIC_READ) {
        return f == fetch;
    }
    return f != compare;
}

struct over {
    fi_ep_type type;
    const char *transports;
};

options opt(const over &o)
{
    options r;
    r.type = o.type;
    r.caps = FI_MSG | FI_RMA | FI_ATOMIC;
    return r;
}

constexpr size_t room = 8192;

using work = std::function<void(fabric_side &, partner &, const remote &)>;

// The first role has memory and progresses; the second one works on it.
void run(const over &where, const options &o, const work &act,
         const std::function<void(fabric_side &)> &look = {}, uint64_t access = ~0ull)
{
    auto role_of = [&](bool target) {
        return [&, target](partner &p) {
            setenv("FI_UCXLIKE_TLS", where.transports, 1);
            fabric_side s(o);
            o.type == FI_EP_RDM ? s.open_rdm(p) : target ? s.serve(p) : s.dial(p);
            alignas(16) static char memory[room];
            remote r;
            if (target) {
                r = s.expose(memory, room, access & (FI_REMOTE_READ | FI_REMOTE_WRITE));
                p.tell(&r, sizeof(r));
                s.serve_until_told(p);
                if (look) {
                    look(s);
                }
            } else {
                p.hear(&r, sizeof(r));
                act(s, p, r);
                p.tell(1);
            }
            s.barrier(p);
        };
    };
    EXPECT_EQ(run_pair(role_of(true), role_of(false)), "");
}

class prov_atomic_test : public testing::TestWithParam<over> {};

// Values that tell operations apart: zeros, equal ones, extremes.
template <class T>
std::vector<T> values(unsigned seed)
{
    std::vector<T> v;
    if constexpr (std::is_arithmetic_v<T>) {
        v = {T(0),
             T(1),
             T(7),
             T(100),
             std::numeric_limits<T>::max(),
             std::numeric_limits<T>::lowest()};
    } else {
        using P = typename T::value_type;
        v = {T(0), T(1), T(P(0), P(1)), T(P(3), P(-4)), T(P(-7.5), P(0.25)), T(100)};
    }
    std::rotate(v.begin(), v.begin() + seed % v.size(), v.end());
    return v;
}

// A long double has bytes that mean nothing.
template <class T>
bool same(const T &a, const T &b)
{
    return a == b || (a != a && b != b);
}

template <class T>
void expect_same(const std::vector<T> &got, const std::vector<T> &want, const char *what,
                 fi_datatype type, fi_op op, form f)
{
    for (size_t i = 0; i < want.size(); ++i) {
        if (same(got[i], want[i])) {
            continue;
        }
        fprintf(stderr, "type %d, operation %d, form %d: %s of element %zu differs\n", type, op, f,
                what, i);
        _exit(1);
    }
}

void wait_one(fabric_side &s, void *context, uint64_t flags)
{
    fi_cq_tagged_entry e = s.complete(s.txcq);
    REQUIRE(e.op_context == context);
    REQUIRE_EQ(e.flags, flags);
}

template <class T>
void write_values(fabric_side &s, const remote &r, std::vector<T> &v)
{
    s.retry([&] {
        return fi_write(s.ep, v.data(), v.size() * sizeof(T), nullptr, s.peer, r.address, r.key,
                        &v);
    });
    wait_one(s, &v, FI_RMA | FI_WRITE);
}

template <class T>
std::vector<T> read_values(fabric_side &s, const remote &r, size_t count)
{
    std::vector<T> v(count);
    s.retry([&] {
        return fi_read(s.ep, v.data(), count * sizeof(T), nullptr, s.peer, r.address, r.key, &v);
    });
    wait_one(s, &v, FI_RMA | FI_READ);
    return v;
}

template <class T>
void one_combination(fabric_side &s, const remote &r, fi_datatype type, fi_op op, form f)
{
    for (unsigned seed : {1u, 2u, 4u}) {
        std::vector<T> before = values<T>(0), x = values<T>(seed), c = values<T>(seed / 2), old;
        size_t n = before.size();
        old.resize(n);
        write_values(s, r, before);
        s.retry([&] {
            switch (f) {
            case plain:
                return fi_atomic(s.ep, x.data(), n, nullptr, s.peer, r.address, r.key, type, op,
                                 &x);
            case fetch:
                return fi_fetch_atomic(s.ep, x.data(), n, nullptr, old.data(), nullptr, s.peer,
                                       r.address, r.key, type, op, &x);
            default:
                return fi_compare_atomic(s.ep, x.data(), n, nullptr, c.data(), nullptr, old.data(),
                                         nullptr, s.peer, r.address, r.key, type, op, &x);
            }
        });
        wait_one(s, &x, FI_ATOMIC | (f == plain ? FI_WRITE : FI_READ));
        if (f != plain) {
            expect_same(old, before, "the old value", type, op, f);
        }
        std::vector<T> want(n);
        for (size_t i = 0; i < n; ++i) {
            want[i] = outcome<T>(op, before[i], x[i], c[i]);
        }
        expect_same(read_values<T>(s, r, n), want, "the new value", type, op, f);
    }
}

template <class T>
void every_operation(fabric_side &s, const remote &r, fi_datatype type)
{
    constexpr bool integer = std::is_integral_v<T>, complex = !std::is_arithmetic_v<T>;
    for (int op = 0; op < FI_ATOMIC_OP_LAST; ++op) {
        for (int f = 0; f < forms; ++f) {
            auto o = static_cast<fi_op>(op);
            fi_atomic_attr attr = {};
            size_t count = 0;
            int known = fi_query_atomic(s.domain, type, o, &attr, form_flags[f]);
            int valid = f == plain   ? fi_atomicvalid(s.ep, type, o, &count)
                        : f == fetch ? fi_fetch_atomicvalid(s.ep, type, o, &count)
                                     : fi_compare_atomicvalid(s.ep, type, o, &count);
            REQUIRE_EQ(valid, known);
            if (!defined(o, integer, complex) || !has_form(o, static_cast<form>(f))) {
                REQUIRE_EQ(known, -FI_EOPNOTSUPP);
                continue;
            }
            REQUIRE_EQ(known, 0);
            REQUIRE_EQ(attr.size, sizeof(T));
            REQUIRE_EQ(attr.count, count);
            REQUIRE(count >= 6);
            one_combination<T>(s, r, type, o, static_cast<form>(f));
        }
    }
}

TEST_P(prov_atomic_test, computes_every_operation_on_every_type)
{
    run(GetParam(), opt(GetParam()), [](fabric_side &s, partner &, const remote &r) {
        every_operation<int8_t>(s, r, FI_INT8);
        every_operation<uint8_t>(s, r, FI_UINT8);
        every_operation<int16_t>(s, r, FI_INT16);
        every_operation<uint16_t>(s, r, FI_UINT16);
        every_operation<int32_t>(s, r, FI_INT32);
        every_operation<uint32_t>(s, r, FI_UINT32);
        every_operation<int64_t>(s, r, FI_INT64);
        every_operation<uint64_t>(s, r, FI_UINT64);
        every_operation<float>(s, r, FI_FLOAT);
        every_operation<double>(s, r, FI_DOUBLE);
        every_operation<std::complex<float>>(s, r, FI_FLOAT_COMPLEX);
        every_operation<std::complex<double>>(s, r, FI_DOUBLE_COMPLEX);
        every_operation<long double>(s, r, FI_LONG_DOUBLE);
        every_operation<std::complex<long double>>(s, r, FI_LONG_DOUBLE_COMPLEX);
        fi_atomic_attr attr;
        // In libfabric 2.x neither end of a list is of its list's type.
        auto no_type = static_cast<fi_datatype>(FI_DATATYPE_LAST);
        auto no_op = static_cast<fi_op>(FI_ATOMIC_OP_LAST);
        REQUIRE_EQ(fi_query_atomic(s.domain, no_type, FI_SUM, &attr, 0), -FI_EOPNOTSUPP);
        REQUIRE_EQ(fi_query_atomic(s.domain, FI_INT8, no_op, &attr, 0), -FI_EOPNOTSUPP);
        REQUIRE_EQ(fi_query_atomic(s.domain, FI_INT8, FI_SUM, nullptr, 0), -FI_EINVAL);
    });
}

// Every call, with buffers in pieces, up to the number of elements that fi_query_atomic gives.
TEST_P(prov_atomic_test, serves_every_call)
{
    run(GetParam(), opt(GetParam()), [](fabric_side &s, partner &, const remote &r) {
        size_t n = 0;
        REQUIRE_EQ(fi_atomicvalid(s.ep, FI_UINT32, FI_SUM, &n), 0);
        REQUIRE_EQ(fi_compare_atomicvalid(s.ep, FI_UINT32, FI_CSWAP, &n), 0);
        std::vector<uint32_t> x(n), c(n), old(n), want(n);
        for (size_t i = 0; i < n; ++i) {
            want[i] = static_cast<uint32_t>(i), x[i] = static_cast<uint32_t>(2 * i + 1);
        }
        write_values(s, r, want);
        auto pieces = [&](std::vector<uint32_t> &v) {
            return std::vector<fi_ioc>{{v.data(), 3}, {v.data() + 3, 1}, {v.data() + 4, n - 4}};
        };
        auto xs = pieces(x), cs = pieces(c), olds = pieces(old);
        fi_rma_ioc there = {r.address, n, r.key};
        auto message = [&](fi_op op) {
            return fi_msg_atomic{xs.data(), nullptr, 3, s.peer, &there, 1, FI_UINT32, op, &x, 0};
        };
        auto add = [&] {
            for (size_t i = 0; i < n; ++i) {
                want[i] += x[i];
            }
        };
        auto check = [&] { REQUIRE(read_values<uint32_t>(s, r, n) == want); };

        s.retry([&] {
            return fi_atomicv(s.ep, xs.data(), nullptr, 3, s.peer, r.address, r.key, FI_UINT32,
                              FI_SUM, &x);
        });
        wait_one(s, &x, FI_ATOMIC | FI_WRITE);
        add(), check();
        fi_msg_atomic m = message(FI_SUM);
        s.retry([&] { return fi_atomicmsg(s.ep, &m, FI_COMPLETION); });
        wait_one(s, &x, FI_ATOMIC | FI_WRITE);
        add(), check();
        // An injected operand is ours at once; there is no completion.
        auto spoilt = x;
        s.retry([&] {
            return fi_inject_atomic(s.ep, spoilt.data(), n, s.peer, r.address, r.key, FI_UINT32,
                                    FI_SUM);
        });
        std::fill(spoilt.begin(), spoilt.end(), 0xbad);
        add(), check();

        auto fetched = [&] {
            wait_one(s, &x, FI_ATOMIC | FI_READ);
            REQUIRE(old == want);
        };
        s.retry([&] {
            return fi_fetch_atomicv(s.ep, xs.data(), nullptr, 3, olds.data(), nullptr, 3, s.peer,
                                    r.address, r.key, FI_UINT32, FI_SUM, &x);
        });
        fetched(), add(), check();
        s.retry(
            [&] { return fi_fetch_atomicmsg(s.ep, &m, olds.data(), nullptr, 3, FI_COMPLETION); });
        fetched(), add(), check();
        // A fetch without an operand.
        s.retry([&] {
            return fi_fetch_atomic(s.ep, nullptr, n, nullptr, old.data(), nullptr, s.peer,
                                   r.address, r.key, FI_UINT32, FI_ATOMIC_READ, &x);
        });
        fetched(), check();

        auto swap = [&] {
            for (size_t i = 0; i < n; ++i) {
                want[i] = c[i] == want[i] ? x[i] : want[i];
            }
        };
        auto half = [&] { // every second one is to be swapped
            for (size_t i = 0; i < n; ++i) {
                c[i] = want[i] + (i & 1), x[i] = static_cast<uint32_t>(7 * i);
            }
        };
        half();
        s.retry([&] {
            return fi_compare_atomicv(s.ep, xs.data(), nullptr, 3, cs.data(), nullptr, 3,
                                      olds.data(), nullptr, 3, s.peer, r.address, r.key, FI_UINT32,
                                      FI_CSWAP, &x);
        });
        fetched(), swap(), check();
        half();
        m = message(FI_CSWAP);
        s.retry([&] {
            return fi_compare_atomicmsg(s.ep, &m, cs.data(), nullptr, 3, olds.data(), nullptr, 3,
                                        FI_COMPLETION);
        });
        fetched(), swap(), check();
        REQUIRE_EQ(fi_cq_read(s.txcq, nullptr, 0), -FI_EAGAIN);
    });
}

void expect_error(fabric_side &s, int error)
{
    fi_cq_err_entry e = {};
    s.complete(s.txcq, &e);
    REQUIRE_EQ(e.err, error);
}

TEST_P(prov_atomic_test, refuses_wrong_keys_bounds_and_rights)
{
    for (uint64_t access : {FI_REMOTE_READ | FI_REMOTE_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE}) {
        auto act = [&](fabric_side &s, partner &, const remote &r) {
            uint64_t x = 5, old = 77;
            auto attempt = [&](fi_op op, uint64_t address, uint64_t key, int error) {
                s.retry([&] {
                    return fi_fetch_atomic(s.ep, &x, 1, nullptr, &old, nullptr, s.peer, address,
                                           key, FI_UINT64, op, &x);
                });
                if (error) {
                    expect_error(s, error);
                } else {
                    wait_one(s, &x, FI_ATOMIC | FI_READ);
                }
            };
            attempt(FI_SUM, r.address, r.key + 1, FI_ENOKEY);
            attempt(FI_SUM, r.address + room, r.key, FI_EACCES);
            attempt(FI_SUM, r.address + room - 4, r.key, FI_EACCES);
            attempt(FI_SUM, r.address - 4, r.key, FI_EACCES);
            REQUIRE_EQ(old, 77u);
            attempt(FI_ATOMIC_READ, r.address, r.key, access & FI_REMOTE_READ ? 0 : FI_EACCES);
            // What changes and what shows need the right to do so.
            bool both = access == (FI_REMOTE_READ | FI_REMOTE_WRITE);
            attempt(FI_SUM, r.address, r.key, both ? 0 : FI_EACCES);
            s.retry([&] {
                return fi_atomic(s.ep, &x, 1, nullptr, s.peer, r.address, r.key, FI_UINT64, FI_SUM,
                                 &x);
            });
            if (access & FI_REMOTE_WRITE) {
                wait_one(s, &x, FI_ATOMIC | FI_WRITE);
            } else {
                expect_error(s, FI_EACCES);
            }
        };
        run(GetParam(), opt(GetParam()), act, {}, access);
    }
}

TEST_P(prov_atomic_test, wrong_arguments_are_invalid)
{
    run(GetParam(), opt(GetParam()), [](fabric_side &s, partner &, const remote &r) {
        std::vector<uint64_t> x(room);
        size_t most = 0;
        REQUIRE_EQ(fi_atomicvalid(s.ep, FI_UINT64, FI_SUM, &most), 0);
        auto with = [&](size_t n, fi_datatype type, fi_op op) {
            return fi_atomic(s.ep, x.data(), n, nullptr, s.peer, r.address, r.key, type, op, &x);
        };
        REQUIRE_EQ(with(most + 1, FI_UINT64, FI_SUM), -FI_EINVAL);
        REQUIRE_EQ(with(0, FI_UINT64, FI_SUM), -FI_EINVAL);
        REQUIRE_EQ(with(1, FI_FLOAT, FI_BOR), -FI_EOPNOTSUPP);
        REQUIRE_EQ(with(1, FI_UINT64, FI_CSWAP), -FI_EOPNOTSUPP);
        REQUIRE_EQ(with(1, FI_UINT64, static_cast<fi_op>(99)), -FI_EOPNOTSUPP);
        REQUIRE_EQ(with(1, static_cast<fi_datatype>(99), FI_SUM), -FI_EOPNOTSUPP);
        REQUIRE_EQ(fi_atomicmsg(s.ep, nullptr, 0), -FI_EINVAL);
        fi_ioc iov = {x.data(), 2}, one = {x.data(), 1};
        fi_rma_ioc there = {r.address, 1, r.key};
        fi_msg_atomic m = {&iov, nullptr, 1, s.peer, &there, 1, FI_UINT64, FI_SUM, &x, 0};
        REQUIRE_EQ(fi_atomicmsg(s.ep, &m, 0), -FI_EINVAL); // 2 operands for 1 element
        there.count = 2;
        REQUIRE_EQ(fi_fetch_atomicmsg(s.ep, &m, &one, nullptr, 1, 0), -FI_EINVAL);
        m.rma_iov_count = 0;
        REQUIRE_EQ(fi_atomicmsg(s.ep, &m, 0), -FI_EINVAL);
        std::vector<fi_ioc> many(9, one);
        REQUIRE_EQ(fi_atomicv(s.ep, many.data(), nullptr, 9, s.peer, r.address, r.key, FI_UINT64,
                              FI_SUM, &x),
                   -FI_EINVAL);
        REQUIRE_EQ(fi_cq_read(s.txcq, nullptr, 0), -FI_EAGAIN);
    });
}

// Counters at both ends; FI_DELIVERY_COMPLETE: what is complete has taken effect.
TEST_P(prov_atomic_test, counts_and_takes_effect)
{
    fid_cntr *first = nullptr, *second = nullptr; // of each side
    options o = opt(GetParam());
    o.tx_op_flags = FI_DELIVERY_COMPLETE;
    o.before_enable = [&](fabric_side &s) {
        first = s.counter_of(FI_WRITE | FI_REMOTE_WRITE);
        second = s.counter_of(FI_READ | FI_REMOTE_READ);
    };
    auto act = [&](fabric_side &s, partner &, const remote &r) {
        uint64_t x = 3, old = 0;
        for (int i = 0; i < 10; ++i) {
            s.retry([&] {
                return fi_atomic(s.ep, &x, 1, nullptr, s.peer, r.address, r.key, FI_UINT64, FI_SUM,
                                 nullptr);
            });
        }
        REQUIRE_EQ(fi_cntr_wait(first, 10, patience_ms), 0);
        s.retry([&] {
            return fi_fetch_atomic(s.ep, nullptr, 1, nullptr, &old, nullptr, s.peer, r.address,
                                   r.key, FI_UINT64, FI_ATOMIC_READ, nullptr);
        });
        REQUIRE_EQ(fi_cntr_wait(second, 1, patience_ms), 0);
        REQUIRE_EQ(old, 30u);
        s.retry([&] {
            return fi_atomic(s.ep, &x, 1, nullptr, s.peer, r.address, r.key + 1, FI_UINT64, FI_SUM,
                             nullptr);
        });
        REQUIRE_EQ(fi_cntr_wait(first, 11, patience_ms), -FI_EAVAIL);
        REQUIRE_EQ(fi_cntr_readerr(first), 1u);
    };
    auto look = [&](fabric_side &) {
        REQUIRE_EQ(fi_cntr_read(first), 10u);
        REQUIRE_EQ(fi_cntr_read(second), 1u);
    };
    run(GetParam(), o, act, look);
}

// Both sides add to one value, and take numbers from another: none is lost or given twice.
TEST_P(prov_atomic_test, is_atomic)
{
    constexpr uint64_t times = 500;
    alignas(16) static uint64_t memory[2];
    options o = opt(GetParam());
    const char *transports = GetParam().transports;
    auto role_of = [&](bool owner) {
        return [&, owner](partner &p) {
            setenv("FI_UCXLIKE_TLS", transports, 1);
            fabric_side s(o);
            o.type == FI_EP_RDM ? s.open_rdm(p) : owner ? s.serve(p) : s.dial(p);
            // Each has one half of the values, so each is initiator and target at once.
            remote mine = s.expose(memory, sizeof(memory), FI_REMOTE_READ | FI_REMOTE_WRITE), r;
            p.tell(&mine, sizeof(mine));
            p.hear(&r, sizeof(r));
            uint64_t one = 1, last = 0, old = 0;
            for (uint64_t i = 0; i < times; ++i) {
                s.retry([&] {
                    return fi_fetch_atomic(s.ep, &one, 1, nullptr, &old, nullptr, s.peer, r.address,
                                           r.key, FI_UINT64, FI_SUM, &old);
                });
                fi_cq_tagged_entry e = s.complete(s.txcq);
                REQUIRE(e.op_context == &old);
                REQUIRE_EQ(old, last);
                last = old + 1;
                s.retry([&] {
                    return fi_inject_atomic(s.ep, &one, 1, s.peer, r.address + 8, r.key, FI_UINT64,
                                            FI_SUM);
                });
            }
            s.retry([&] {
                return fi_fetch_atomic(s.ep, nullptr, 1, nullptr, &old, nullptr, s.peer,
                                       r.address + 8, r.key, FI_UINT64, FI_ATOMIC_READ, &old);
            });
            s.complete(s.txcq);
            REQUIRE_EQ(old, times);
            p.tell(1);
            s.serve_until_told(p);
            REQUIRE_EQ(memory[0], times);
            REQUIRE_EQ(memory[1], times);
            s.barrier(p);
        };
    };
    EXPECT_EQ(run_pair(role_of(true), role_of(false)), "");
}

INSTANTIATE_TEST_SUITE_P(, prov_atomic_test,
                         testing::ValuesIn(prov_test::endpoints_over<over>({FI_EP_RDM, FI_EP_MSG})),
                         [](const auto &i) {
                             return std::string(i.param.type == FI_EP_RDM ? "rdm_" : "msg_") +
                                    prov_test::first_transport(i.param.transports);
                         });

} // namespace
