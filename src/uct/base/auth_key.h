// SPDX-License-Identifier: BSD-3-Clause
// Keys that let a process into a part of a fabric: AUTH_KEY of a memory domain. The bytes are what
// libfabric calls an authorization key; the core alone knows what they mean.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace uct {

using key_bytes = std::vector<uint8_t>;

// "KEY" or "DEVICE=KEY", several with commas. A key is SERVICE:VNI, two numbers of Slingshot, or
// hexadecimal digits with dashes anywhere, such as a UUID.
class auth_keys {
  public:
    // False: it does not parse, and nothing changes.
    bool parse(const char *text);
    const std::string &text() const { return text_; }
    // That of the device, else that of any; empty: there is none.
    key_bytes find(const std::string &device) const;

  private:
    struct entry {
        std::string device; // empty: any
        key_bytes key;
    };
    std::string text_;
    std::vector<entry> entries_;
};

// The 8 bytes of libfabric's struct cxi_auth_key.
key_bytes slingshot_key(uint32_t service, uint16_t vni);

} // namespace uct
