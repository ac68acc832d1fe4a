/** Version of everything that crosses a process boundary, with which a new fleet begins. */
export const PROTOCOL_VERSION = 5;

/**
 * Oldest version of a fleet in which this code takes part (else `PROTOCOL_MISMATCH`). Code of that version understands
 * all that this code writes, so workers of both can serve one fleet, and an upgrade can be taken back.
 */
export const OLDEST_PROTOCOL_VERSION = 5;

/** Tells whether this code takes part in a fleet of the version. */
export const speaksProtocol = (version: number): boolean =>
  version >= OLDEST_PROTOCOL_VERSION && version <= PROTOCOL_VERSION;

/**
 * Newest version of sealed specs and entries that this code understands. A change such as a new field raises it if
 * older code would misunderstand or refuse the change. `specSchema` returns the new version for specs that use the
 * change.
 */
export const SCHEMA_VERSION = 2;
