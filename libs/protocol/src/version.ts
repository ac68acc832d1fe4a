/** Version of everything that crosses a process boundary. Hosts of one fleet share it (`PROTOCOL_MISMATCH`). */
export const PROTOCOL_VERSION = 5;

/**
 * Newest version of sealed specs and entries that this code understands. A change such as a new field raises it if
 * older code would misunderstand or refuse the change. `specSchema` returns the new version for specs that use the
 * change.
 */
export const SCHEMA_VERSION = 2;
