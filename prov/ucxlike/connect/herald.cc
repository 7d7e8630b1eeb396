// SPDX-License-Identifier: BSD-3-Clause
#include "prov/ucxlike/connect/herald.h"

#include <algorithm>
#include <cerrno>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <utility>

namespace ucxlike {

namespace {

// Milliseconds after the join at which a member speaks unasked; then once a `period`.
constexpr uint64_t early[] = {0, 10, 30, 70, 150, 300};
constexpr uint64_t period = 1000;
constexpr uint64_t alone = 500; // a member that has heard no other by then is the first
constexpr uint64_t quiet =
    60; // one that has heard others knows all after so long without a new one
constexpr uint64_t patience = 2000;   // a join takes no longer, whatever members are missing
constexpr size_t most_members = 4096; // that are counted, of whatever is heard
constexpr unsigned most_at_once = 64; // notices, since others wait for the helper thread
constexpr uint64_t forgotten = 3500;  // a member is not counted after this much silence

unsigned interface_of(const address &name)
{
    unsigned index = 0;
    ifaddrs *list = nullptr;
    if (getifaddrs(&list) != 0) {
        return 0;
    }
    address wanted = name;
    wanted.set_port(0);
    for (ifaddrs *i = list; i && !index; i = i->ifa_next) {
        if (i->ifa_addr && address::from(i->ifa_addr, sizeof(sockaddr_in6)) == wanted) {
            index = if_nametoindex(i->ifa_name);
        }
    }
    freeifaddrs(list);
    return index;
}

void check(ssize_t result, const char *what)
{
    if (result >= 0) {
        return;
    }
    int error = errno;
    PROV_WARN(EP_CTRL, "fi_join: %s: %s\n", what, strerror(error));
    throw failure{error};
}

template <class T>
void set(int fd, int level, int name, const T &value, const char *what)
{
    check(setsockopt(fd, level, name, &value, sizeof(value)), what);
}

} // namespace

herald::herald(const address &group, const address &name, const wire::notice &mine, engine *eng)
    : group_(group), mine_(mine), eng_(eng), started_(now_ms()), next_(started_)
{
    try {
        open(name);
        // Later ones that are lost are said again, but where the first has no way there is none.
        check(say(mine_), "the group's address");
        timer_ = ucs::async_watch::timer(
            0, [](void *arg, uint32_t) { static_cast<herald *>(arg)->look(); }, this);
        notices_ = ucs::async_watch::fd(
            socket_, EPOLLIN, [](void *arg, uint32_t) { static_cast<herald *>(arg)->on_notices(); },
            this);
        timer_.set_once(1);
    } catch (...) {
        timer_.reset();
        close_sockets();
        throw;
    }
}

herald::~herald()
{
    notices_.reset();
    timer_.reset();
    wire::notice bye = mine_;
    bye.kind = wire::notice::leaves;
    say(bye);
    close_sockets();
}

void herald::close_sockets()
{
    for (int fd : {socket_, voice_}) {
        if (fd >= 0) {
            ::close(fd);
        }
    }
}

void herald::open(const address &name)
{
    if (group_.sa.sa_family == AF_INET6 && !group_.in6.sin6_scope_id) {
        group_.in6.sin6_scope_id = interface_of(name);
    }
    listen(name);
    speak_as(name);
}

// Bound to the group's address, so that nothing else sent to the port arrives; on the interface of
// the endpoint's own name.
void herald::listen(const address &name)
{
    socket_ = socket(group_.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(socket_, "socket");
    set(socket_, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
    check(bind(socket_, &group_.sa, group_.length()), "bind");
    if (group_.sa.sa_family == AF_INET) {
        ip_mreq join = {group_.in4.sin_addr, name.in4.sin_addr};
        set(socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, join, "IP_ADD_MEMBERSHIP");
    } else {
        ipv6_mreq join = {group_.in6.sin6_addr, interface_of(name)};
        set(socket_, IPPROTO_IPV6, IPV6_JOIN_GROUP, join, "IPV6_JOIN_GROUP");
    }
}

void herald::speak_as(const address &name)
{
    voice_ = socket(group_.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(voice_, "socket");
    address from = name;
    from.set_port(0);
    check(bind(voice_, &from.sa, from.length()), "bind");
    if (group_.sa.sa_family == AF_INET) {
        set(voice_, IPPROTO_IP, IP_MULTICAST_IF, name.in4.sin_addr, "IP_MULTICAST_IF");
    } else {
        set(voice_, IPPROTO_IPV6, IPV6_MULTICAST_IF, static_cast<int>(interface_of(name)),
            "IPV6_MULTICAST_IF");
    }
}

ssize_t herald::say(wire::notice n)
{
    n.members = static_cast<uint16_t>(std::min<size_t>(others_.size() + 1, UINT16_MAX));
    return sendto(voice_, &n, sizeof(n), MSG_NOSIGNAL, &group_.sa, group_.length());
}

// A member speaks of itself alone, so that a notice does not make others connect to a third party.
static bool speaks_of_itself(const wire::notice &n, const address &from)
{
    address host = wire::name_of(n.sender), source = from;
    host.set_port(0);
    source.set_port(0);
    if (source.sa.sa_family == AF_INET6) {
        source.in6.sin6_scope_id = 0; // a name on the wire has none
    }
    return host == source;
}

void herald::hear()
{
    char bytes[sizeof(wire::notice) + 1];
    sockaddr_storage from = {};
    socklen_t from_length = sizeof(from);
    auto *at = reinterpret_cast<sockaddr *>(&from);
    ssize_t n;
    for (unsigned i = 0;
         i < most_at_once && (n = recvfrom(socket_, bytes, sizeof(bytes), 0, at, &from_length)) > 0;
         ++i) {
        wire::notice heard_now;
        if (wire::parse(bytes, static_cast<size_t>(n), heard_now) &&
            speaks_of_itself(heard_now, address::from(&from, from_length))) {
            heard(heard_now);
        }
        from_length = sizeof(from);
    }
}

void herald::heard(const wire::notice &n)
{
    if (n.sender.incarnation == mine_.sender.incarnation) {
        return; // our own voice
    }
    std::string key(reinterpret_cast<const char *>(&n.sender), sizeof(n.sender));
    uint64_t now = now_ms();
    auto it =
        std::find_if(others_.begin(), others_.end(), [&](const known &k) { return k.key == key; });
    if (n.kind == wire::notice::leaves) {
        if (it != others_.end()) {
            others_.erase(it);
        }
    } else if (it != others_.end()) {
        it->heard = now;
        it->members = n.members;
    } else if (others_.size() < most_members) {
        others_.push_back({key, now, n.members});
        last_new_ = now;
        answer_ = true;
    }
    if (n.kind != wire::notice::leaves) {
        most_ = std::max<size_t>(most_, n.members);
    }
    std::lock_guard g(mutex_);
    if (inbox_.size() < most_members) {
        inbox_.push_back(n); // else it is said again
    }
}

void herald::forget_silent(uint64_t now)
{
    std::erase_if(others_, [now](const known &k) { return k.heard + forgotten < now; });
}

bool herald::complete(uint64_t now) const
{
    if (others_.empty()) {
        return now - started_ >= alone;
    }
    size_t members = others_.size() + 1;
    // A member that counts fewer has not heard of this member, or of another that has.
    return now - last_new_ >= quiet && members >= most_ &&
           std::all_of(others_.begin(), others_.end(),
                       [=](const known &k) { return k.members >= members; });
}

void herald::deliver()
{
    eng_->mail.store(true);
    eng_->wake();
}

void herald::on_notices()
{
    hear();
    deliver();
    look();
}

// Speaks when it is time to, or to a newcomer, and looks whether the group is complete.
void herald::look()
{
    uint64_t now = now_ms();
    if (now >= next_ || answer_) {
        if (now >= next_) {
            ++spoken_;
            next_ = spoken_ < std::size(early) ? started_ + early[spoken_] : now + period;
        }
        answer_ = false;
        say(mine_);
        forget_silent(now);
    }
    if (!settled_ && (complete(now) || now - started_ >= patience)) {
        settled_ = true;
        deliver();
    }
    if (!overdue_ && now - started_ >= patience) {
        overdue_ = true;
        deliver();
    }
    uint64_t pause = next_ > now ? next_ - now : 1;
    if (!settled_) {
        pause = std::min<uint64_t>(pause, quiet / 2);
    }
    timer_.set_once(pause * 1'000'000);
}

std::vector<wire::notice> herald::take()
{
    std::lock_guard g(mutex_);
    return std::exchange(inbox_, {});
}

} // namespace ucxlike
