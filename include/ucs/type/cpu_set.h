/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set of up to 1024 processors, laid out as cpu_set_t of the C library is.
 */
#ifndef UCS_TYPE_CPU_SET_H
#define UCS_TYPE_CPU_SET_H

#include <stddef.h>
#include <stdint.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/** One word of a processor set. */
typedef unsigned long int ucs_cpu_mask_t;

#define UCS_CPU_SETSIZE 1024                      /**< Processors in a set. */
#define UCS_NCPUBITS (8 * sizeof(ucs_cpu_mask_t)) /**< Processors in a word. */
#define UCS_CPUELT(_cpu) ((_cpu) / UCS_NCPUBITS)  /**< Word of a processor. */
#define UCS_CPUMASK(_cpu)                                                                          \
    ((ucs_cpu_mask_t)1 << ((_cpu) % UCS_NCPUBITS)) /**< Its bit in the word. */

/** A set of processors; bit n stands for processor n. */
typedef struct {
    ucs_cpu_mask_t
        ucs_bits[UCS_CPU_SETSIZE / UCS_NCPUBITS]; /**< The words, lowest processors first. */
} ucs_cpu_set_t;

/** Make the set empty. */
#define UCS_CPU_ZERO(_cpusetp)                                                                     \
    do {                                                                                           \
        size_t _ucs_word;                                                                          \
        for (_ucs_word = 0; _ucs_word < UCS_CPU_SETSIZE / UCS_NCPUBITS; ++_ucs_word) {             \
            (_cpusetp)->ucs_bits[_ucs_word] = 0;                                                   \
        }                                                                                          \
    } while (0)

/** Add a processor; a number outside the set is ignored. */
#define UCS_CPU_SET(_cpu, _cpusetp)                                                                \
    do {                                                                                           \
        size_t _ucs_cpu = (_cpu);                                                                  \
        if (_ucs_cpu < UCS_CPU_SETSIZE) {                                                          \
            (_cpusetp)->ucs_bits[UCS_CPUELT(_ucs_cpu)] |= UCS_CPUMASK(_ucs_cpu);                   \
        }                                                                                          \
    } while (0)

/** Remove a processor; a number outside the set is ignored. */
#define UCS_CPU_CLR(_cpu, _cpusetp)                                                                \
    do {                                                                                           \
        size_t _ucs_cpu = (_cpu);                                                                  \
        if (_ucs_cpu < UCS_CPU_SETSIZE) {                                                          \
            (_cpusetp)->ucs_bits[UCS_CPUELT(_ucs_cpu)] &= ~UCS_CPUMASK(_ucs_cpu);                  \
        }                                                                                          \
    } while (0)

/** Whether processor @a cpu is in the set; 0 for a number outside it. */
static inline int ucs_cpu_is_set(int cpu, const ucs_cpu_set_t *cpusetp)
{
    if ((cpu < 0) || (cpu >= UCS_CPU_SETSIZE)) {
        return 0;
    }

    return (cpusetp->ucs_bits[UCS_CPUELT(cpu)] & UCS_CPUMASK(cpu)) != 0;
}

/** Whether no processor is in the set. */
static inline int ucs_cpu_set_is_empty(const ucs_cpu_set_t *cpusetp)
{
    ucs_cpu_mask_t any = 0;
    size_t word;

    for (word = 0; word < UCS_CPU_SETSIZE / UCS_NCPUBITS; ++word) {
        any |= cpusetp->ucs_bits[word];
    }

    return any == 0;
}

/** The lowest processor of the set; 0 when the set is empty. */
static inline int ucs_cpu_set_find_lcs(const ucs_cpu_set_t *cpu_mask)
{
    int cpu = 0;

    while ((cpu < UCS_CPU_SETSIZE) && !ucs_cpu_is_set(cpu, cpu_mask)) {
        ++cpu;
    }

    return (cpu < UCS_CPU_SETSIZE) ? cpu : 0;
}

END_C_DECLS

#endif
