/** Signals by which a terminal, a supervisor or a person ends a command line. */
export const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
