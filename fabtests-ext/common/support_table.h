// SPDX-License-Identifier: BSD-3-Clause
//
// What fabtests-ext/abi/support.tsv claims.
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

namespace support_table {

// Function -> whether it is listed as working, of one face (ucp, uct, fi) or of all. Empty when the
// file was not found.
inline std::map<std::string, bool> read(const std::string &only = "")
{
    const char *root = getenv("top_srcdir");
    std::ifstream file(std::string(root ? root : ".") + "/fabtests-ext/abi/support.tsv");
    std::map<std::string, bool> table;
    for (std::string line; std::getline(file, line);) {
        std::istringstream in(line);
        std::string face, group, kind, function, state;
        if (line[0] != '#' && std::getline(in, face, '\t') && std::getline(in, group, '\t') &&
            std::getline(in, kind, '\t') && std::getline(in, function, '\t') &&
            std::getline(in, state, '\t') && (only.empty() || face == only)) {
            table[function] = state == "works";
        }
    }
    return table;
}

} // namespace support_table
