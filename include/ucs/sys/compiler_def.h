/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiler attributes, bit and pointer helpers that the public headers are written with, under
 * UCX's names. Plain C99 with GNU attributes; nothing here needs a library.
 */
#ifndef UCS_COMPILER_DEF_H
#define UCS_COMPILER_DEF_H

/* Around declarations of types: C linkage in C++. */
#ifdef __cplusplus
#define BEGIN_C_DECLS extern "C" {
#define END_C_DECLS }
#else
#define BEGIN_C_DECLS
#define END_C_DECLS
#endif

/*
 * Around declarations of functions and data that the library exports: C linkage, and default
 * visibility also where the including source is compiled with -fvisibility=hidden.
 */
#define UCS_BEGIN_API BEGIN_C_DECLS _Pragma("GCC visibility push(default)")
#define UCS_END_API _Pragma("GCC visibility pop") END_C_DECLS

/** Refuse to compile when @a _cond is false. To be used as a statement inside a function. */
#define UCS_STATIC_ASSERT(_cond)                                                                   \
    switch (0) {                                                                                   \
    case 0:                                                                                        \
    case (_cond):;                                                                                 \
    }

/** Buffers above this many bytes are not placed on the stack. */
#define UCS_ALLOCA_MAX_SIZE 1200

/* Attributes of types (S), functions (F) and variables (V). */
#define UCS_S_MAY_ALIAS __attribute__((may_alias)) /**< Accesses may alias any type. */
#define UCS_S_PACKED                                                                               \
    __attribute__((packed)) /**< No padding; an enum takes the smallest integer type. */
#define UCS_F_PURE __attribute__((pure)) /**< The result depends on arguments and memory only. */
#define UCS_F_NORETURN __attribute__((noreturn)) /**< Never returns. */
#define UCS_F_NOINLINE __attribute__((noinline)) /**< Never inlined. */
#define UCS_F_CTOR __attribute__((constructor))  /**< Runs when the shared object is loaded. */
#define UCS_F_DTOR __attribute__((destructor))   /**< Runs when the shared object is unloaded. */
#define UCS_F_MAYBE_UNUSED                                                                         \
    __attribute__((unused)) /**< A static function that some includers do not call. */
#define UCS_F_NON_NULL __attribute__((nonnull)) /**< No pointer argument may be NULL. */
#define UCS_V_UNUSED __attribute__((unused))    /**< A variable that may stay unused. */

#ifdef __GNUC__
#define UCS_F_ALWAYS_INLINE                                                                        \
    inline __attribute__((always_inline)) /**< Inlined also without optimization. */
#else
#define UCS_F_ALWAYS_INLINE inline
#endif

/** printf-like function: the format is argument @a fmtargN, its values start at argument @a vargN
 * (both from 1). */
#define UCS_F_PRINTF(fmtargN, vargN) __attribute__((format(printf, fmtargN, vargN)))

/** Variable or type aligned to @a _align bytes. */
#define UCS_V_ALIGNED(_align) __attribute__((aligned(_align)))

/** Quiets "may be used uninitialized" where the compiler runs without flow analysis. */
#ifndef __OPTIMIZE__
#define UCS_V_INITIALIZED(_v) (_v = (ucs_typeof(_v))0)
#else
#define UCS_V_INITIALIZED(_v) ((void)0)
#endif

/** Function that the address sanitizer leaves alone. */
#ifdef __SANITIZE_ADDRESS__
#define UCS_F_NO_SANITIZE_ADDRESS __attribute__((no_sanitize_address))
#else
#define UCS_F_NO_SANITIZE_ADDRESS
#endif

/** A statement that does nothing, for a label to stand before. */
#define UCS_EMPTY_STATEMENT                                                                        \
    {                                                                                              \
    }

/** The value with only bit @a i set, an unsigned long. */
#define UCS_BIT(i) (1ul << (i))

/** The value with bits 0 to @a _i - 1 set. */
#define UCS_MASK(_i) (((_i) >= 64) ? ~0ul : (UCS_BIT(_i) - 1))

/** Bit @a _i of @a _value, as 0 or 1. */
#define UCS_BIT_GET(_value, _i) (!!((_value)&UCS_BIT(_i)))

/** @a _ptr moved by @a _offset bytes, a void pointer. */
#define UCS_PTR_BYTE_OFFSET(_ptr, _offset) ((void *)((intptr_t)(_ptr) + (intptr_t)(_offset)))

/** @a _ptr moved by the size of one @a _type, a void pointer. */
#define UCS_PTR_TYPE_OFFSET(_ptr, _type) ((void *)((ucs_typeof(_type) *)(_ptr) + 1))

/** Bytes from @a _start to @a _end, a ptrdiff_t. */
#define UCS_PTR_BYTE_DIFF(_start, _end) ((ptrdiff_t)((uintptr_t)(_end) - (uintptr_t)(_start)))

/** Number of elements of an array (not of a pointer). */
#define ucs_static_array_size(_array) (sizeof(_array) / sizeof((_array)[0]))

/** Type of an expression, or the type itself. */
#define ucs_typeof(_type) __typeof__(_type)

/** Byte offset of @a _member in structure @a _type, an unsigned long. */
#define ucs_offsetof(_type, _member) ((unsigned long)__builtin_offsetof(_type, _member))

/** The @a _type object whose @a _member @a _ptr points to. */
#define ucs_container_of(_ptr, _type, _member)                                                     \
    ((_type *)((char *)(void *)(_ptr)-ucs_offsetof(_type, _member)))

/** The @a _type object whose first member, named super, @a _ptr points to. */
#define ucs_derived_of(_ptr, _type)                                                                \
    (__extension__({                                                                               \
        UCS_STATIC_ASSERT(__builtin_offsetof(_type, super) == 0)                                   \
        ucs_container_of(_ptr, _type, super);                                                      \
    }))

/** Size in bytes of member @a _field of @a _type. */
#define ucs_field_sizeof(_type, _field) sizeof(((_type *)0)->_field)

/** Type of member @a _field of @a _type. */
#define ucs_field_type(_type, _field) ucs_typeof(((_type *)0)->_field)

/** Whether the integer type has no sign. */
#define ucs_is_unsigned_type(_type) ((_type)(-1) > (_type)(0))

/** @a _ptr without its const, as @a _type. */
#define ucs_const_cast(_type, _ptr) (_type)(uintptr_t)(const void *)(_ptr)

/** The compiler moves no memory access across this point. */
#define ucs_compiler_fence() __asm__ volatile("" ::: "memory")

/* Cache hints: for reading or writing soon, kept or (nt) used once. */
#define ucs_read_prefetch(p) __builtin_prefetch(p, 0, 3)
#define ucs_write_prefetch(p) __builtin_prefetch(p, 1, 3)
#define ucs_nt_read_prefetch(p) __builtin_prefetch(p, 0, 0)
#define ucs_nt_write_prefetch(p) __builtin_prefetch(p, 1, 0)

/* Branch hints; the value is that of the expression. */
#define ucs_likely(x) __builtin_expect(x, 1)
#define ucs_unlikely(x) __builtin_expect(x, 0)

/** Whether the compiler knows the value of @a expr. */
#define ucs_is_constant(expr) __builtin_constant_p(expr)

/* Heads of functions that run when the object is loaded or unloaded; the includer provides
 * UCS_PP_APPEND_UNIQUE_ID. */
#define UCS_STATIC_INIT static void UCS_F_CTOR UCS_PP_APPEND_UNIQUE_ID(ucs_initializer_ctor)(void)
#define UCS_STATIC_CLEANUP                                                                         \
    static void UCS_F_DTOR UCS_PP_APPEND_UNIQUE_ID(ucs_initializer_dtor)(void)

/** Whether two types are the same (C only). */
#define ucs_same_type(_type1, _type2) __builtin_types_compatible_p(_type1, _type2)

/** Loop in which @a _elem points to each of the @a _length elements of @a _array. */
#define ucs_carray_for_each(_elem, _array, _length)                                                \
    for ((_elem) = (_array); (_elem) < ((_array) + (_length)); ++(_elem))

/** Exchange the values that two pointers of one type point to (C only). */
#define ucs_swap(_a, _b)                                                                           \
    {                                                                                              \
        ucs_typeof(*(_a)) __tmp;                                                                   \
                                                                                                   \
        UCS_STATIC_ASSERT(ucs_same_type(ucs_typeof(*(_a)), ucs_typeof(*(_b))));                    \
        __tmp = *(_a);                                                                             \
        *(_a) = *(_b);                                                                             \
        *(_b) = __tmp;                                                                             \
    }

#endif
