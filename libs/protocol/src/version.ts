/** Version of everything that crosses a process boundary. Hosts of one fleet share it (`PROTOCOL_MISMATCH`). */
export const PROTOCOL_VERSION = 5;

/**
 * Newest version of sealed specs and entries that this code understands. A change that older code would misunderstand
 * or refuse, such as a new field, raises it, and `specSchema` returns it for specs with the change.
 */
export const SCHEMA_VERSION = 2;
