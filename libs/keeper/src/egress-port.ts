/**
 * Port on its own loopback at which a sandbox with a limited network reaches its proxy. Equal to the one in egress.h.
 */
export const EGRESS_PORT = 61_080;
