// SPDX-License-Identifier: BSD-3-Clause
//
// Registrations for further rails.
#include "ucp/mem/rail_memory.h"

#include "ucp/core/worker.h"
#include "ucp/mem/mem.h"

namespace ucp {

void rail_memory_forget(rail_memory *memory) noexcept
{
    for (unsigned i = 0; i < memory->count; ++i) {
        if (memory->owned[i]) {
            forget_registration(memory->context, memory->md[i], memory->reg[i]);
        }
    }
}

void rail_memory_release(rail_memory *memory) noexcept
{
    for (unsigned i = 0; i < memory->count; ++i) {
        if (memory->owned[i]) {
            drop_registration(memory->context, memory->md[i], memory->reg[i]);
        }
    }
    delete memory;
}

bool rail_memory_add(data_request *req, rail_memory *memory, uint8_t md_index,
                     unsigned access) noexcept
{
    const md &m = req->worker->context->mds[md_index];
    registration reg;
    bool users = req->user_memh && (req->user_memh->md_map & (1u << md_index));
    bool needed = access != UCT_MD_MEM_ACCESS_RMA || m.attr.cap.flags & UCT_MD_FLAG_NEED_MEMH;
    if (users) {
        reg.memh = req->user_memh->memh[md_index];
    } else if (needed && (!(m.attr.cap.flags & UCT_MD_FLAG_REG) ||
                          make_registration(memory->context, md_index, req->dt.contig_ptr(),
                                            req->dt.length(), access, &reg) != UCS_OK)) {
        return false;
    }
    unsigned i = memory->count++;
    memory->md[i] = md_index;
    memory->reg[i] = reg;
    memory->owned[i] = needed && !users;
    return true;
}

} // namespace ucp
