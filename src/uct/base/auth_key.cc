// SPDX-License-Identifier: BSD-3-Clause
// Parsing of AUTH_KEY.
#include "uct/base/auth_key.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

namespace uct {

namespace {

template <class Number>
bool parse_number(std::string_view text, Number *number)
{
    auto [end, error] = std::from_chars(text.begin(), text.end(), *number);
    return error == std::errc() && end == text.end();
}

key_bytes parse_digits(std::string_view text)
{
    std::string digits;
    for (char c : text) {
        if (c != '-') {
            digits += c;
        }
    }
    key_bytes key(digits.size() / 2);
    for (size_t i = 0; i < key.size(); ++i) {
        const char *at = &digits[2 * i];
        auto [end, error] = std::from_chars(at, at + 2, key[i], 16);
        if (error != std::errc() || end != at + 2) {
            return {};
        }
    }
    return digits.size() % 2 == 0 ? key : key_bytes();
}

// Empty: it does not parse.
key_bytes parse_key(std::string_view text)
{
    size_t colon = text.find(':');
    if (colon == std::string_view::npos) {
        return parse_digits(text);
    }
    uint32_t service = 0;
    uint16_t vni = 0;
    bool whole =
        parse_number(text.substr(0, colon), &service) && parse_number(text.substr(colon + 1), &vni);
    return whole ? slingshot_key(service, vni) : key_bytes();
}

} // namespace

key_bytes slingshot_key(uint32_t service, uint16_t vni)
{
    key_bytes key(8);
    memcpy(&key[0], &service, sizeof(service));
    memcpy(&key[4], &vni, sizeof(vni));
    return key;
}

bool auth_keys::parse(const char *text)
{
    std::vector<entry> found;
    std::string_view rest(text);
    while (!rest.empty()) {
        size_t end = std::min(rest.find(','), rest.size());
        std::string_view one = rest.substr(0, end);
        size_t equals = one.find('=');
        bool named = equals != std::string_view::npos;
        entry e{std::string(named ? one.substr(0, equals) : ""),
                parse_key(named ? one.substr(equals + 1) : one)};
        bool ends_in_comma = end + 1 == rest.size();
        if (e.key.empty() || (named && e.device.empty()) || ends_in_comma) {
            return false;
        }
        found.push_back(std::move(e));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    text_ = text;
    entries_ = std::move(found);
    return true;
}

key_bytes auth_keys::find(const std::string &device) const
{
    key_bytes any;
    for (const entry &e : entries_) {
        if (e.device == device) {
            return e.key;
        }
        if (e.device.empty()) {
            any = e.key;
        }
    }
    return any;
}

} // namespace uct
