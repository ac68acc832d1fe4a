/**
 * The version of everything that crosses a process boundary. Hosts of one fleet have the same (`PROTOCOL_MISMATCH`).
 */
export const PROTOCOL_VERSION = 5;

/**
 * The newest version of the data in sealed specs and entries that this code understands.
 * A change that older code would misunderstand or refuse (a new field of a spec, for
 * example) raises it, and `specSchema` returns it for specs that use the change.
 */
export const SCHEMA_VERSION = 2;
