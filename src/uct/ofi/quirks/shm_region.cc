// SPDX-License-Identifier: BSD-3-Clause
#include "uct/ofi/quirks/shm_region.h"

#include "ucs/sys.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uct::ofi {

shm_region::shm_region(const std::string &name, size_t length)
{
    // A name of the core may have its final zero with it.
    int fd = open(("/dev/shm/" + std::string(name.c_str())).c_str(),
                  O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    struct stat st;
    bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
    size_t size = ours ? static_cast<size_t>(st.st_size) : 0;
    length = length ? length : size;
    if (size >= ucs::page_size() && length <= size) {
        void *head = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (head != MAP_FAILED) {
            head_ = static_cast<char *>(head);
            length_ = length;
        }
    }
    close(fd);
}

shm_region::~shm_region()
{
    if (head_) {
        munmap(head_, length_);
    }
}

} // namespace uct::ofi
