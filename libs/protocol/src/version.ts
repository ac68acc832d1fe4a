/** The version of everything that crosses a process boundary. A process refuses data of a higher one (`PROTOCOL_MISMATCH`). */
export const PROTOCOL_VERSION = 1;
