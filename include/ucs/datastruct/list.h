/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A circular list whose links are members of the elements. The head is a link that belongs to no
 * element.
 */
#ifndef UCS_LIST_H_
#define UCS_LIST_H_

#include <ucs/debug/debug.h>
#include <ucs/sys/compiler_def.h>

BEGIN_C_DECLS

/** A link of a list. */
typedef struct ucs_list_link {
    struct ucs_list_link *prev; /**< The link before. */
    struct ucs_list_link *next; /**< The link after. */
} ucs_list_link_t;

/** Value of a link between two others. */
#define UCS_LIST_INITIALIZER(_prev, _next)                                                         \
    {                                                                                              \
        (_prev), (_next)                                                                           \
    }

/** Define an empty list. */
#define UCS_LIST_HEAD(name) ucs_list_link_t name = UCS_LIST_INITIALIZER(&(name), &(name))

/** Check that a link may be accessed. */
#define UCS_LIST_CHECK_ELEM_IS_VALID(_elem)                                                        \
    UCS_ASAN_ADDRESS_IS_VALID(_elem, sizeof(ucs_list_link_t));

/** Make a list empty; what it held is not touched. */
static inline void ucs_list_head_init(ucs_list_link_t *head)
{
    head->next = head;
    head->prev = head;
}

/** Put @a elem between two links; what lay between them is cut out. */
static inline void ucs_list_insert_replace(ucs_list_link_t *prev, ucs_list_link_t *next,
                                           ucs_list_link_t *elem)
{
    elem->next = next;
    elem->prev = prev;
    next->prev = elem;
    prev->next = elem;
}

/** Put @a replacement where @a elem is. */
static inline void ucs_list_replace(ucs_list_link_t *elem, ucs_list_link_t *replacement)
{
    ucs_list_insert_replace(elem->prev, elem->next, replacement);
}

/** Put @a new_link right after @a pos. */
static inline void ucs_list_insert_after(ucs_list_link_t *pos, ucs_list_link_t *new_link)
{
    ucs_list_insert_replace(pos, pos->next, new_link);
}

/** Put @a new_link right before @a pos. */
static inline void ucs_list_insert_before(ucs_list_link_t *pos, ucs_list_link_t *new_link)
{
    ucs_list_insert_replace(pos->prev, pos, new_link);
}

/** Take a link out of its list. */
static inline void ucs_list_del(ucs_list_link_t *elem)
{
    elem->next->prev = elem->prev;
    elem->prev->next = elem->next;
}

/** Whether a list has no element. */
static inline int ucs_list_is_empty(const ucs_list_link_t *head)
{
    return head->next == head;
}

/** Whether @a elem is the first of the list. */
static inline int ucs_list_is_first(const ucs_list_link_t *head, const ucs_list_link_t *elem)
{
    return elem->prev == head;
}

/** Whether @a elem is the last of the list. */
static inline int ucs_list_is_last(const ucs_list_link_t *head, const ucs_list_link_t *elem)
{
    return elem->next == head;
}

/** Whether @a elem is all that the list has. */
static inline int ucs_list_is_only(const ucs_list_link_t *head, const ucs_list_link_t *elem)
{
    return ucs_list_is_first(head, elem) && ucs_list_is_last(head, elem);
}

/** Append the elements of @a newlist to @a head. The head of @a newlist is not reset. */
static inline void ucs_list_splice_tail(ucs_list_link_t *head, ucs_list_link_t *newlist)
{
    ucs_list_link_t *tail = head->prev;

    if (ucs_list_is_empty(newlist)) {
        return;
    }

    newlist->next->prev = tail;
    newlist->prev->next = head;
    head->prev = newlist->prev;
    tail->next = newlist->next;
}

/** @return Number of elements, by walking the list. */
static inline unsigned long ucs_list_length(ucs_list_link_t *head)
{
    const ucs_list_link_t *link;
    unsigned long length = 0;

    for (link = head->next; link != head; link = link->next) {
        ++length;
    }

    return length;
}

/** Put an element at the front or at the end of a list. */
#define ucs_list_add_head(_head, _item) ucs_list_insert_after(_head, _item)
#define ucs_list_add_tail(_head, _item) ucs_list_insert_before(_head, _item)

/** The element before or after a link; @a _member is the link's name in @a _type. */
#define ucs_list_prev(_elem, _type, _member) (ucs_container_of((_elem)->prev, _type, _member))
#define ucs_list_next(_elem, _type, _member) (ucs_container_of((_elem)->next, _type, _member))

/** The first or the last element of a list that is not empty. */
#define ucs_list_head ucs_list_next
#define ucs_list_tail ucs_list_prev

/** Loop over the elements; the body must not take out the current one. */
#define ucs_list_for_each(_elem, _head, _member)                                                   \
    for (_elem = ucs_container_of((_head)->next, ucs_typeof(*_elem), _member);                     \
         &(_elem)->_member != (_head);                                                             \
         _elem = ucs_container_of((_elem)->_member.next, ucs_typeof(*_elem), _member))

/** Loop over the elements; the body may take out or free the current one. @a _telem holds the next.
 */
#define ucs_list_for_each_safe(_elem, _telem, _head, _member)                                      \
    for (_elem = ucs_container_of((_head)->next, ucs_typeof(*_elem), _member),                     \
        _telem = ucs_container_of((_elem)->_member.next, ucs_typeof(*_elem), _member);             \
         &(_elem)->_member != (_head); _elem = _telem,                                             \
        _telem = ucs_container_of((_telem)->_member.next, ucs_typeof(*_telem), _member))

/** Take out the first element of a list that is not empty; the value is the element. */
#define ucs_list_extract_head(_head, _type, _member)                                               \
    (__extension__({                                                                               \
        ucs_list_link_t *_ucs_first = (_head)->next;                                               \
        ucs_list_del(_ucs_first);                                                                  \
        ucs_container_of(_ucs_first, _type, _member);                                              \
    }))

END_C_DECLS

#endif
