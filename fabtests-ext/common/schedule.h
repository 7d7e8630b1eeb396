// SPDX-License-Identifier: BSD-3-Clause
//
// A random schedule: steps that a test carries out one by one. A step says what to do in numbers
// that mean something in any state, so that a schedule stays one whatever is taken out of it. That
// makes one that fails short (shrink), and its text can be run again (read).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace schedule {

struct step {
    unsigned what = 0;
    std::array<unsigned, 4> with = {};

    bool operator==(const step &) const = default;
};

using steps = std::vector<step>;

inline unsigned number(const char *variable, unsigned otherwise)
{
    const char *n = getenv(variable);
    return n ? static_cast<unsigned>(strtoul(n, nullptr, 0)) : otherwise;
}

// Of no bytes the places may be null.
inline bool same(const void *a, const void *b, size_t length)
{
    return length == 0 || memcmp(a, b, length) == 0;
}

// How long what must come may take; less makes a schedule that hangs short in less time.
inline const std::chrono::seconds waiting(number("UCXLIKE_TEST_PATIENCE", 60));

// The same for the same numbers. What a step does is one of `kinds`, each as often as it stands
// there.
inline steps draw(unsigned seed, size_t count, const std::vector<unsigned> &kinds)
{
    std::minstd_rand random(seed + 1);
    auto number = [&] { return static_cast<unsigned>(random() >> 8); };
    steps all(count);
    for (step &s : all) {
        s.what = kinds[number() % kinds.size()];
        for (unsigned &n : s.with) {
            n = number() % 1000;
        }
    }
    return all;
}

// "3.1.2.3.4 0.5.6.7.8": a step after the other, without an end of line.
inline std::string write(const steps &all)
{
    std::ostringstream text;
    for (const step &s : all) {
        text << (&s == all.data() ? "" : " ") << s.what;
        for (unsigned n : s.with) {
            text << '.' << n;
        }
    }
    return text.str();
}

// What write() has written. A text that is none gives the steps before the first that is none.
inline steps read(const std::string &text)
{
    steps all;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
        std::istringstream numbers(word);
        step s;
        numbers >> s.what;
        for (unsigned &n : s.with) {
            char dot = 0;
            numbers >> dot >> n;
        }
        if (numbers.fail()) {
            break;
        }
        all.push_back(s);
    }
    return all;
}

// Takes steps out as long as `fails` holds for the rest, large parts first: what is left fails, and
// with any one step less it does not, unless the attempts, each a call of `fails`, are used up.
template <class Fails>
steps shrink(steps all, unsigned attempts, Fails &&fails)
{
    for (size_t part = std::max<size_t>(all.size() / 2, 1);;) {
        bool shorter = false;
        for (size_t at = 0; at < all.size() && attempts > 0;) {
            steps rest = all;
            auto from = rest.begin() + static_cast<long>(at);
            rest.erase(from, from + static_cast<long>(std::min(part, rest.size() - at)));
            --attempts;
            if (fails(rest)) {
                all = rest;
                shorter = true;
            } else {
                at += part;
            }
        }
        if (attempts == 0 || (part == 1 && !shorter)) {
            return all;
        }
        part = std::max<size_t>(part / 2, 1);
    }
}

// By the two sides that it names by turns; nothing of it is under way in the end.
template <class Side>
void carry_out(const steps &all, Side &a, Side &b)
{
    for (const step &s : all) {
        (s.with.back() % 2 ? a : b).carry_out(s);
    }
    a.drain(); // both receive what is left
    b.drain();
    a.finish();
    b.finish();
}

} // namespace schedule
