/** The part of a logger that is used here. */
export interface AccessLog {
  warn(fields: { err: unknown }, event: string): void;
}
