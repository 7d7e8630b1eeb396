/* SPDX-License-Identifier: BSD-3-Clause
 * The memory-event calls that Open MPI makes. There is nothing to notify: the library registers
 * memory through libfabric, whose own memory monitor watches unmapping. */
#include <stddef.h>
#include <ucs/type/status.h>

__attribute__((visibility("default"))) ucs_status_t ucm_test_events(int events);
__attribute__((visibility("default"))) ucs_status_t ucm_test_external_events(int events);
__attribute__((visibility("default"))) void ucm_set_external_event(int event);
__attribute__((visibility("default"))) void ucm_vm_munmap(void *address, size_t length);

ucs_status_t ucm_test_events(int events)
{
    (void)events;
    return UCS_OK;
}

ucs_status_t ucm_test_external_events(int events)
{
    (void)events;
    return UCS_OK;
}

void ucm_set_external_event(int event)
{
    (void)event;
}

void ucm_vm_munmap(void *address, size_t length)
{
    (void)address;
    (void)length;
}
