// SPDX-License-Identifier: BSD-3-Clause
// Each atomic operation, without and with the former value: see selftest.h.
#include "tools/selftest/selftest.h"

#include <cstring>

namespace selftest::atomic_operations {
namespace {

struct row {
    const char *name;
    ucp_atomic_op_t op;
    bool posts; // it exists without the former value
};

constexpr row rows[] = {{"add", UCP_ATOMIC_OP_ADD, true},    {"and", UCP_ATOMIC_OP_AND, true},
                        {"or", UCP_ATOMIC_OP_OR, true},      {"xor", UCP_ATOMIC_OP_XOR, true},
                        {"swap", UCP_ATOMIC_OP_SWAP, false}, {"cswap", UCP_ATOMIC_OP_CSWAP, false}};
// Each row has a word for the operation with, and one for the one without the former value.
constexpr size_t words = 2 * std::size(rows);

template <class Word>
constexpr Word initial = static_cast<Word>(0xa5a5f00d12345678);
template <class Word>
constexpr Word operand = static_cast<Word>(0x0ff01234fff0ff11);

template <class Word>
Word after(ucp_atomic_op_t op)
{
    switch (op) {
    case UCP_ATOMIC_OP_ADD:
        return initial<Word> + operand<Word>;
    case UCP_ATOMIC_OP_AND:
        return initial<Word> & operand<Word>;
    case UCP_ATOMIC_OP_OR:
        return initial<Word> | operand<Word>;
    case UCP_ATOMIC_OP_XOR:
        return initial<Word> ^ operand<Word>;
    default:
        return operand<Word>; // it was swapped
    }
}

template <class Word>
std::string owns(peer &p)
{
    shared_memory memory(&p, true, words * sizeof(Word));
    for (size_t i = 0; i < words; ++i) {
        memcpy(memory.data.data() + i * sizeof(Word), &initial<Word>, sizeof(Word));
    }
    p.meet();
    p.meet();
    for (size_t i = 0; i < words; ++i) {
        const row &r = rows[i / 2];
        Word value;
        memcpy(&value, memory.data.data() + i * sizeof(Word), sizeof(Word));
        if (value != (i % 2 && !r.posts ? initial<Word> : after<Word>(r.op))) {
            throw failure(std::string(i % 2 ? "" : "fetching ") + r.name +
                          ": the word of the target is wrong");
        }
    }
    return {};
}

template <class Word>
void apply(peer &p, const shared_memory &memory, const row &r, size_t word, bool fetch)
{
    uint64_t at = memory.address + word * sizeof(Word);
    // The former value comes where the swap's operand was: cswap compares with its buffer.
    Word value = operand<Word>;
    Word reply = r.op == UCP_ATOMIC_OP_CSWAP ? operand<Word> : 0;
    if (r.op == UCP_ATOMIC_OP_CSWAP) {
        value = initial<Word>;
    }
    ucp_request_param_t param = {};
    param.op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE;
    param.datatype = ucp_dt_make_contig(sizeof(Word));
    if (fetch) {
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_REPLY_BUFFER;
        param.reply_buffer = &reply;
    }
    p.wait(ucp_atomic_op_nbx(p.ep, r.op, &value, 1, at, memory.key, &param), r.name);
    if (fetch && reply != initial<Word>) {
        throw failure(std::string("fetching ") + r.name + ": the former value is wrong");
    }
}

template <class Word>
std::string reaches(peer &p)
{
    shared_memory memory(&p, false, words * sizeof(Word));
    p.meet();
    for (size_t i = 0; i < std::size(rows); ++i) {
        apply<Word>(p, memory, rows[i], 2 * i, true);
        if (rows[i].posts) {
            apply<Word>(p, memory, rows[i], 2 * i + 1, false);
        }
    }
    p.flush();
    p.meet();
    return {};
}

} // namespace
} // namespace selftest::atomic_operations

namespace selftest {

const test atomics32 = {"atomics of 32 bits", UCP_FEATURE_AMO32, false,
                        atomic_operations::reaches<uint32_t>, atomic_operations::owns<uint32_t>};
const test atomics64 = {"atomics of 64 bits", UCP_FEATURE_AMO64, false,
                        atomic_operations::reaches<uint64_t>, atomic_operations::owns<uint64_t>};

} // namespace selftest
