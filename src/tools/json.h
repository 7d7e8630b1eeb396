// SPDX-License-Identifier: BSD-3-Clause
// A value of JSON, made member by member and printed. The tools need no reader.
#pragma once

#include <cstdio>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tools {

class json {
  public:
    json() = default; // null
    json(const char *text) : kind_(kind::text), text_(text) {}
    json(const std::string &text) : kind_(kind::text), text_(text) {}
    template <class T>
    requires std::is_arithmetic_v<T> json(T value) : kind_(kind::plain), text_(plain(value)) {}
    static json object() { return json(kind::object); }
    static json array() { return json(kind::array); }

    // A member of an object, which is added when there is none of that name.
    json &operator[](const std::string &name)
    {
        for (auto &[known, value] : members_) {
            if (known == name) {
                return value;
            }
        }
        return members_.emplace_back(name, json()).second;
    }
    void push(json value) { members_.emplace_back("", std::move(value)); }
    bool empty() const { return members_.empty(); }
    const std::vector<std::pair<std::string, json>> &members() const { return members_; }
    // Of a text or a number.
    const std::string &text() const { return text_; }
    const json &at(const std::string &name) const
    {
        for (auto &[known, value] : members_) {
            if (known == name) {
                return value;
            }
        }
        static const json null;
        return null;
    }

    std::string dump(unsigned depth = 0) const
    {
        switch (kind_) {
        case kind::null:
            return "null";
        case kind::plain:
            return text_;
        case kind::text:
            return quoted(text_);
        case kind::object:
        case kind::array:
            return list(depth);
        }
        return "";
    }

  private:
    enum class kind { null, plain, text, object, array };
    explicit json(kind k) : kind_(k) {}

    template <class T>
    static std::string plain(T value)
    {
        if constexpr (std::is_same_v<T, bool>) {
            return value ? "true" : "false";
        } else if constexpr (std::is_integral_v<T>) {
            return std::to_string(value);
        } else {
            char text[32];
            snprintf(text, sizeof(text), "%.9g", static_cast<double>(value));
            return text;
        }
    }

    static std::string quoted(const std::string &text)
    {
        std::string out = "\"";
        for (char c : text) {
            if (c == '"' || c == '\\') {
                out += std::string("\\") + c;
            } else if (static_cast<unsigned char>(c) < 0x20) {
                char code[8];
                snprintf(code, sizeof(code), "\\u%04x", static_cast<unsigned>(c));
                out += code;
            } else {
                out += c;
            }
        }
        return out + "\"";
    }

    std::string list(unsigned depth) const
    {
        const char *ends = kind_ == kind::object ? "{}" : "[]";
        if (members_.empty()) {
            return ends;
        }
        std::string indent(2 * depth + 2, ' ');
        std::string out(1, ends[0]);
        for (size_t i = 0; i < members_.size(); ++i) {
            out += (i ? ",\n" : "\n") + indent;
            if (kind_ == kind::object) {
                out += quoted(members_[i].first) + ": ";
            }
            out += members_[i].second.dump(depth + 1);
        }
        return out + "\n" + std::string(2 * depth, ' ') + ends[1];
    }

    kind kind_ = kind::null;
    std::string text_;
    std::vector<std::pair<std::string, json>> members_;
};

} // namespace tools
