// SPDX-License-Identifier: BSD-3-Clause
// The input of a libFuzzer target is a list of messages. This mutator knows their form: it inserts
// valid messages, and sets aligned fields to the values where lengths, ids and offsets go wrong.
//
//   input: | kind u8 | length u16 | bytes | ... until the input ends
//
// A 64-bit field of symbol_base + n stands for the live value n (an id, an address) of the target,
// so that inputs stay valid from run to run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

namespace fuzz {

constexpr uint64_t symbol_base = 0x4c4f424d59530000ull; // little-endian: 0 0 "SYMBOL"
constexpr size_t record_head = 3;

struct message {
    uint8_t kind;
    std::vector<uint8_t> bytes;
};

inline std::vector<message> parse(const uint8_t *data, size_t size)
{
    std::vector<message> all;
    while (size >= record_head) {
        uint16_t length;
        memcpy(&length, data + 1, sizeof(length));
        size_t n = std::min<size_t>(length, size - record_head);
        all.push_back({data[0], {data + record_head, data + record_head + n}});
        data += record_head + n;
        size -= record_head + n;
    }
    return all;
}

// Writes as many messages as fit, and returns their length in bytes.
inline size_t print(const std::vector<message> &all, uint8_t *data, size_t max)
{
    size_t at = 0;
    for (const message &m : all) {
        if (m.bytes.size() > UINT16_MAX || at + record_head + m.bytes.size() > max) {
            break;
        }
        auto length = static_cast<uint16_t>(m.bytes.size());
        data[at] = m.kind;
        memcpy(data + at + 1, &length, sizeof(length));
        std::copy(m.bytes.begin(), m.bytes.end(), data + at + record_head);
        at += record_head + length;
    }
    return at;
}

// Replaces symbols in the aligned fields by their values.
inline void resolve(std::vector<uint8_t> &bytes, const std::function<uint64_t(uint16_t)> &value)
{
    for (size_t at = 0; at + 8 <= bytes.size() && at < 128; at += 8) {
        uint64_t field;
        memcpy(&field, bytes.data() + at, 8);
        if ((field & ~uint64_t(0xffff)) == symbol_base) {
            field = value(static_cast<uint16_t>(field));
            memcpy(bytes.data() + at, &field, 8);
        }
    }
}

class mutator {
  public:
    // templates: a valid message of each kind. symbols: how many live values there are.
    mutator(unsigned seed, std::span<const message> templates, unsigned symbols)
        : random_(seed), templates_(templates), symbols_(symbols)
    {
    }

    size_t mutate(uint8_t *data, size_t size, size_t max)
    {
        if (below(5) == 0) {
            return LLVMFuzzerMutate(data, size, max);
        }
        std::vector<message> all = parse(data, size);
        for (size_t n = 1 + below(3); n > 0; --n) {
            change(all);
        }
        return print(all, data, max);
    }

  private:
    size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

    uint64_t edge()
    {
        static constexpr uint64_t edges[] = {0,          1,          7,          8,          255,
                                             256,        4095,       4096,       65535,      65536,
                                             1ull << 31, 1ull << 32, 1ull << 47, 1ull << 63, ~0ull};
        switch (below(3)) {
        case 0:
            return symbol_base + below(symbols_);
        case 1:
            return edges[below(std::size(edges))] + below(3) - 1;
        default:
            return uint64_t(0) - below(300);
        }
    }

    void set_field(message &m)
    {
        static constexpr size_t widths[] = {8, 8, 8, 4, 2, 1};
        size_t width = widths[below(std::size(widths))];
        if (m.bytes.size() < width) {
            return;
        }
        size_t room = std::min<size_t>(m.bytes.size(), 96) / width;
        uint64_t value = edge();
        memcpy(m.bytes.data() + width * below(room), &value, width);
    }

    void change(std::vector<message> &all)
    {
        if (all.empty() || below(4) == 0) {
            auto at = all.begin() + static_cast<ptrdiff_t>(below(all.size() + 1));
            all.insert(at, templates_[below(templates_.size())]);
            return;
        }
        message &m = all[below(all.size())];
        switch (below(6)) {
        case 0:
            m.bytes.resize(below(m.bytes.size() + 64));
            break;
        case 1:
            m.kind = templates_[below(templates_.size())].kind;
            break;
        case 2:
            all.push_back(message(m));
            break;
        default:
            set_field(m);
        }
    }

    std::mt19937 random_;
    std::span<const message> templates_;
    unsigned symbols_;
};

} // namespace fuzz
