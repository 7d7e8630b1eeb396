// SPDX-License-Identifier: BSD-3-Clause
// What a function prints to a stream.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

template <class Print>
std::string printed(Print &&print)
{
    char *text = nullptr;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (!stream) {
        throw std::bad_alloc();
    }
    print(stream);
    fclose(stream);
    std::string out(text, length);
    free(text);
    return out;
}
