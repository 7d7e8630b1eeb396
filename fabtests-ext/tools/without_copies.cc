// SPDX-License-Identifier: BSD-3-Clause
// without_copies COMMAND [ARG...]: runs it where no process may read or write another's memory.
// Status 77 where the kernel does not allow filters of system calls.
#include "fabtests-ext/common/forbid_copies.h"

#include <cstdio>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: without_copies COMMAND [ARG...]\n");
        return 2;
    }
    if (!forbid_copies()) {
        perror("filters of system calls are not allowed here");
        return 77;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
