/** At which a sandbox whose network is limited reaches its proxy, on its own loopback. As in egress.h. */
export const EGRESS_PORT = 61_080;
