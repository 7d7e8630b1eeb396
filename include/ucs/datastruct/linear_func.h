/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Straight lines c + m * x: costs as a fixed part and a part for each byte.
 */
#ifndef UCS_LINEAR_FUNC_H_
#define UCS_LINEAR_FUNC_H_

#include <math.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/type/status.h>

BEGIN_C_DECLS

/** The line c + m * x. */
typedef struct {
    double c; /**< Value at 0. */
    double m; /**< Growth with x. */
} ucs_linear_func_t;

/** The line that is 0 everywhere. */
#define UCS_LINEAR_FUNC_ZERO ucs_linear_func_make(0, 0)

/** @return The line @a c + @a m * x. */
static UCS_F_ALWAYS_INLINE ucs_linear_func_t ucs_linear_func_make(double c, double m)
{
    ucs_linear_func_t line;

    line.c = c;
    line.m = m;
    return line;
}

/** @return The value of @a f at @a x. */
static UCS_F_ALWAYS_INLINE double ucs_linear_func_apply(ucs_linear_func_t f, double x)
{
    return (f.m * x) + f.c;
}

/** @return @a func1 + @a func2. */
static UCS_F_ALWAYS_INLINE ucs_linear_func_t ucs_linear_func_add(ucs_linear_func_t func1,
                                                                 ucs_linear_func_t func2)
{
    return ucs_linear_func_make(func1.c + func2.c, func1.m + func2.m);
}

/** @return @a func1 + @a func2 + @a func3. */
static UCS_F_ALWAYS_INLINE ucs_linear_func_t ucs_linear_func_add3(ucs_linear_func_t func1,
                                                                  ucs_linear_func_t func2,
                                                                  ucs_linear_func_t func3)
{
    return ucs_linear_func_make(func1.c + func2.c + func3.c, func1.m + func2.m + func3.m);
}

/** @return @a func1 - @a func2. */
static inline ucs_linear_func_t ucs_linear_func_sub(ucs_linear_func_t func1,
                                                    ucs_linear_func_t func2)
{
    return ucs_linear_func_make(func1.c - func2.c, func1.m - func2.m);
}

/** Add @a func2 to @a func1. */
static inline void ucs_linear_func_add_inplace(ucs_linear_func_t *func1, ucs_linear_func_t func2)
{
    *func1 = ucs_linear_func_add(*func1, func2);
}

/** @return The line x -> outer(inner(x)). */
static inline ucs_linear_func_t ucs_linear_func_compose(ucs_linear_func_t outer,
                                                        ucs_linear_func_t inner)
{
    return ucs_linear_func_make(ucs_linear_func_apply(outer, inner.c), outer.m * inner.m);
}

/**
 * @brief Where two lines cross.
 *
 * @param[in]  func1,func2  The lines.
 * @param[out] x_intersect  The x of the crossing, on success.
 * @return UCS_OK, or UCS_ERR_INVALID_PARAM when they are parallel or the result is not finite.
 */
static inline ucs_status_t ucs_linear_func_intersect(ucs_linear_func_t func1,
                                                     ucs_linear_func_t func2, double *x_intersect)
{
    double x;

    if (func1.m == func2.m) {
        return UCS_ERR_INVALID_PARAM;
    }

    x = (func2.c - func1.c) / (func1.m - func2.m);
    if (!__builtin_isfinite(x)) {
        return UCS_ERR_INVALID_PARAM;
    }

    *x_intersect = x;
    return UCS_OK;
}

/** Raise @a func everywhere by the value of @a baseline_func at @a baseline_x. */
static inline void ucs_linear_func_add_value_at(ucs_linear_func_t *func,
                                                ucs_linear_func_t baseline_func, double baseline_x)
{
    func->c += ucs_linear_func_apply(baseline_func, baseline_x);
}

/** Whether both numbers of two lines differ by no more than @a epsilon. */
static inline int ucs_linear_func_is_equal(ucs_linear_func_t func1, ucs_linear_func_t func2,
                                           double epsilon)
{
    return (fabs(func1.c - func2.c) <= epsilon) && (fabs(func1.m - func2.m) <= epsilon);
}

/** Whether both numbers of a line are within @a epsilon of 0. */
static inline int ucs_linear_func_is_zero(ucs_linear_func_t func, double epsilon)
{
    return ucs_linear_func_is_equal(func, UCS_LINEAR_FUNC_ZERO, epsilon);
}

END_C_DECLS

#endif
