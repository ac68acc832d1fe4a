/** Port on the loopback of a network-limited sandbox, at which its proxy is reached. Equal to that of egress.h. */
export const EGRESS_PORT = 61_080;
