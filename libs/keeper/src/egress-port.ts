/** Port on its loopback at which a sandbox with a limited network reaches its proxy, as in egress.h. */
export const EGRESS_PORT = 61_080;
