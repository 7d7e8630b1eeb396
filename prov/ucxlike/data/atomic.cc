// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/data/atomic.h"

#include <complex>
#include <cstring>
#include <type_traits>

namespace ucxlike {

namespace {

template <class T>
struct is_complex : std::false_type {
};
template <class T>
struct is_complex<std::complex<T>> : std::true_type {
};

template <class T>
bool truth(const T &v)
{
    return v != T(0);
}

// One element: the new value from the old one, the operand and the value to compare with. First
// what needs an order, then what needs bits; false: the operation is none of these.
template <class T>
bool apply_ordered(fi_op op, T v, T x, T c, T *out)
{
    switch (op) {
    case FI_MIN:
        *out = x < v ? x : v;
        return true;
    case FI_MAX:
        *out = x > v ? x : v;
        return true;
    case FI_CSWAP_LE:
        *out = c <= v ? x : v;
        return true;
    case FI_CSWAP_LT:
        *out = c < v ? x : v;
        return true;
    case FI_CSWAP_GE:
        *out = c >= v ? x : v;
        return true;
    case FI_CSWAP_GT:
        *out = c > v ? x : v;
        return true;
    default:
        return false;
    }
}

template <class T>
bool apply_integer(fi_op op, T v, T x, T c, T *out)
{
    switch (op) {
    case FI_BOR:
        *out = static_cast<T>(v | x);
        return true;
    case FI_BAND:
        *out = static_cast<T>(v & x);
        return true;
    case FI_BXOR:
        *out = static_cast<T>(v ^ x);
        return true;
    case FI_MSWAP:
        *out = static_cast<T>((x & c) | (v & ~c));
        return true;
    case FI_SUM: // wraps
        *out = static_cast<T>(static_cast<std::make_unsigned_t<T>>(v) +
                              static_cast<std::make_unsigned_t<T>>(x));
        return true;
    case FI_PROD:
        *out = static_cast<T>(static_cast<uint64_t>(v) * static_cast<uint64_t>(x));
        return true;
    default:
        return false;
    }
}

template <class T>
T apply(fi_op op, T v, T x, T c)
{
    T out;
    if constexpr (!is_complex<T>::value) {
        if (apply_ordered(op, v, x, c, &out)) {
            return out;
        }
    }
    if constexpr (std::is_integral_v<T>) {
        if (apply_integer(op, v, x, c, &out)) {
            return out;
        }
    }
    switch (op) {
    case FI_SUM:
        return static_cast<T>(v + x);
    case FI_PROD:
        return static_cast<T>(v * x);
    case FI_LOR:
        return T(truth(v) || truth(x));
    case FI_LAND:
        return T(truth(v) && truth(x));
    case FI_LXOR:
        return T(truth(v) != truth(x));
    case FI_ATOMIC_WRITE:
        return x;
    case FI_CSWAP:
        return v == c ? x : v;
    case FI_CSWAP_NE:
        return v != c ? x : v;
    default:
        return v;
    }
}

template <class T>
void execute(fi_op op, size_t count, char *at, const char *operand, const char *compare, char *old)
{
    for (size_t i = 0; i < count; ++i) {
        T v, x = T(0), c = T(0);
        memcpy(static_cast<void *>(&v), at, sizeof(T));
        memcpy(old, at, sizeof(T));
        if (op != FI_ATOMIC_READ) {
            memcpy(static_cast<void *>(&x), operand, sizeof(T));
            if (op >= FI_CSWAP) {
                memcpy(static_cast<void *>(&c), compare, sizeof(T));
            }
            T n = apply(op, v, x, c);
            memcpy(at, static_cast<const void *>(&n), sizeof(T));
        }
        at += sizeof(T);
        old += sizeof(T);
        operand += sizeof(T);
        compare += sizeof(T);
    }
}

struct type_row {
    size_t size;
    bool integer;
    bool complex;
    void (*execute)(fi_op, size_t, char *, const char *, const char *, char *);
};

template <class T>
constexpr type_row row()
{
    return {sizeof(T), std::is_integral_v<T>, is_complex<T>::value, execute<T>};
}

constexpr type_row types[] = {
    row<int8_t>(),
    row<uint8_t>(),
    row<int16_t>(),
    row<uint16_t>(),
    row<int32_t>(),
    row<uint32_t>(),
    row<int64_t>(),
    row<uint64_t>(),
    row<float>(),
    row<double>(),
    row<std::complex<float>>(),
    row<std::complex<double>>(),
    row<long double>(),
    row<std::complex<long double>>(),
};
static_assert(sizeof(types) / sizeof(types[0]) == FI_DATATYPE_LAST);

} // namespace

size_t atomic_size(fi_datatype type)
{
    return static_cast<unsigned>(type) < FI_DATATYPE_LAST ? types[type].size : 0;
}

bool atomic_valid(fi_datatype type, fi_op op, atomic_form form)
{
    if (!atomic_size(type) || static_cast<unsigned>(op) >= FI_ATOMIC_OP_LAST) {
        return false;
    }
    const type_row &t = types[type];
    switch (op) {
    case FI_MIN:
    case FI_MAX:
        if (t.complex) {
            return false;
        }
        break;
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
    case FI_MSWAP:
        if (!t.integer) {
            return false;
        }
        break;
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT:
        if (t.complex) {
            return false;
        }
        break;
    default:
        break;
    }
    if (op >= FI_CSWAP) {
        return form == atomic_form::compare;
    }
    if (op == FI_ATOMIC_READ) {
        return form == atomic_form::fetch;
    }
    return form != atomic_form::compare;
}

void atomic_execute(fi_datatype type, fi_op op, size_t count, void *at, const void *operand,
                    const void *compare, void *old)
{
    types[type].execute(op, count, static_cast<char *>(at), static_cast<const char *>(operand),
                        static_cast<const char *>(compare), static_cast<char *>(old));
}

} // namespace ucxlike
