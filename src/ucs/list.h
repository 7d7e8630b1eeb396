// SPDX-License-Identifier: BSD-3-Clause
// Intrusive lists: the links live in the objects, so that queueing allocates nothing. An object is
// in at most one list per link member. Nothing here locks or owns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ucs {

struct list_node {
    list_node *prev = nullptr;
    list_node *next = nullptr;

    bool linked() const { return next; }

    void unlink()
    {
        prev->next = next;
        next->prev = prev;
        prev = next = nullptr;
    }
};

template <class T, list_node T::*Member>
class list {
  public:
    list() { head_.prev = head_.next = &head_; }
    list(const list &) = delete;
    list &operator=(const list &) = delete;

    bool empty() const { return head_.next == &head_; }
    T *front() const { return empty() ? nullptr : owner(head_.next); }
    T *back() const { return empty() ? nullptr : owner(head_.prev); }

    void push_back(T *item) { insert(&(item->*Member), head_.prev, &head_); }
    void push_front(T *item) { insert(&(item->*Member), &head_, head_.next); }
    // at: in this list.
    static void insert_after(T *at, T *item)
    {
        list_node *node = &(at->*Member);
        insert(&(item->*Member), node, node->next);
    }

    // The one before item; item: in this list and not its front.
    static T *prev(T *item) { return owner((item->*Member).prev); }

    static void erase(T *item) { (item->*Member).unlink(); }

    T *pop_front()
    {
        T *item = front();
        if (item) {
            erase(item);
        }
        return item;
    }

    // Moves everything of other behind what is here.
    void splice_back(list &other)
    {
        if (other.empty()) {
            return;
        }
        other.head_.next->prev = head_.prev;
        head_.prev->next = other.head_.next;
        other.head_.prev->next = &head_;
        head_.prev = other.head_.prev;
        other.head_.prev = other.head_.next = &other.head_;
    }

    // Erasing the item an iterator stands on is allowed: the successor is read ahead.
    class iterator {
      public:
        explicit iterator(list_node *node) : node_(node), next_(node->next) {}
        T *operator*() const { return owner(node_); }
        iterator &operator++()
        {
            node_ = next_;
            next_ = node_->next;
            return *this;
        }
        bool operator!=(const iterator &other) const { return node_ != other.node_; }

      private:
        list_node *node_;
        list_node *next_;
    };

    iterator begin() const { return iterator(head_.next); }
    iterator end() const { return iterator(const_cast<list_node *>(&head_)); }

  private:
    static T *owner(list_node *node)
    {
        // Member is a constant, so the compiler folds the offset.
        alignas(T) static constexpr char probe[sizeof(T)] = {};
        auto *base = reinterpret_cast<const T *>(probe);
        size_t offset = reinterpret_cast<const char *>(&(base->*Member)) - probe;
        return reinterpret_cast<T *>(reinterpret_cast<char *>(node) - offset);
    }

    static void insert(list_node *node, list_node *prev, list_node *next)
    {
        node->prev = prev;
        node->next = next;
        prev->next = node;
        next->prev = node;
    }

    list_node head_;
};

// First in, first out, one pointer per object.
template <class T, T *T::*Next>
class queue {
  public:
    bool empty() const { return !head_; }
    T *front() const { return head_; }

    void push(T *item)
    {
        item->*Next = nullptr;
        *tail_ = item;
        tail_ = &(item->*Next);
    }

    T *pop()
    {
        T *item = head_;
        if (item) {
            head_ = item->*Next;
            if (!head_) {
                tail_ = &head_;
            }
        }
        return item;
    }

    queue() = default;
    queue(const queue &) = delete;
    queue &operator=(const queue &) = delete;

  private:
    T *head_ = nullptr;
    T **tail_ = &head_;
};

} // namespace ucs
