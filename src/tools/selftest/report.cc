// SPDX-License-Identifier: BSD-3-Clause
// The page of text: see selftest.h.
#include "tools/selftest/selftest.h"

namespace selftest {
namespace {

std::string text_of(const json &object, const char *member)
{
    auto found = object.find(member);
    return found == object.end() ? ""
           : found->is_string()  ? found->get<std::string>()
                                 : found->dump();
}

} // namespace

void print_head(const json &report)
{
    printf("ucxlike_selftest\n  client %s\n  server %s\n", text_of(report, "versions").c_str(),
           text_of(report, "peer").c_str());
    for (const json &setting : report.at("settings")) {
        printf("  %s\n", setting.get<std::string>().c_str());
    }
}

void print_transport(const json &transport)
{
    printf("\ntransport %s\n", text_of(transport, "transport").c_str());
    for (const json &device : transport.at("devices")) {
        printf("  device %s (%s)\n", text_of(device, "device").c_str(),
               text_of(device, "type").c_str());
        for (const auto &[name, value] : device.at("offered").items()) {
            printf("    %-18s %s\n", name.c_str(), value.get<std::string>().c_str());
        }
        for (const json &line : device.at("supplied")) {
            printf("    supplied: %s\n", line.get<std::string>().c_str());
        }
    }
    printf("  tests\n");
    fflush(stdout);
}

void print_result(const json &row)
{
    std::string note = text_of(row, "note");
    printf("    %-26s %s%s%s%s\n", text_of(row, "test").c_str(), text_of(row, "status").c_str(),
           note.empty() ? "" : " (", note.c_str(), note.empty() ? "" : ")");
    fflush(stdout);
}

void print_end(const json &report)
{
    printf("\n%s passed, %s failed, %s unsupported\n", text_of(report, "passed").c_str(),
           text_of(report, "failed").c_str(), text_of(report, "unsupported").c_str());
}

} // namespace selftest
