/** Codes with which the server closes a WebSocket. Others are those of the protocol. */
export const CLOSE_CODES = {
  ended: 1000,
  invalidMessage: 1007,
  notAllowed: 1008,
  failed: 1011,
  connectAgain: 1012,
} as const;

/** Returns the code and reason with which a connection ends because of an error. */
export function closeCodeOf(error: unknown): { code: number; reason: string } {
  const { status } = (error ?? {}) as { status?: unknown };
  if (status === 503) return { code: CLOSE_CODES.connectAgain, reason: 'The server stops. Connect again.' };
  if (status === 401) return { code: CLOSE_CODES.notAllowed, reason: 'The key does not work any more.' };
  return { code: CLOSE_CODES.failed, reason: 'The terminal failed.' };
}
