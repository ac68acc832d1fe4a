#define _GNU_SOURCE
#include "addresses.h"
#include "log.h"
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>

static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff}; // the beginning of an IPv4 address in IPv6

// Returns 0 for an address that is neither IPv4 nor IPv6.
static int to_ipv6(const struct sockaddr *address, struct in6_addr *to) {
  if (address->sa_family == AF_INET6) *to = ((const struct sockaddr_in6 *)address)->sin6_addr;
  if (address->sa_family == AF_INET) {
    memcpy(to->s6_addr, MAPPED, sizeof MAPPED);
    memcpy(to->s6_addr + sizeof MAPPED, &((const struct sockaddr_in *)address)->sin_addr, 4);
  }
  return address->sa_family == AF_INET6 || address->sa_family == AF_INET;
}

static int is_loopback(const struct in6_addr *address) {
  if (IN6_IS_ADDR_V4MAPPED(address)) return address->s6_addr[sizeof MAPPED] == 127;
  return IN6_IS_ADDR_LOOPBACK(address);
}

int address_is_own(const struct sockaddr *address) {
  struct in6_addr asked, found;
  if (!to_ipv6(address, &asked) || is_loopback(&asked)) return 1;
  struct ifaddrs *all;
  if (getifaddrs(&all)) {
    log_failure("getifaddrs");
    return 1;
  }
  int is_own = 0;
  for (const struct ifaddrs *one = all; one && !is_own; one = one->ifa_next)
    is_own = one->ifa_addr && to_ipv6(one->ifa_addr, &found) && !memcmp(&asked, &found, sizeof asked);
  freeifaddrs(all);
  return is_own;
}
