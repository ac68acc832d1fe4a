/** Signals with which a terminal, a supervisor or a person ends this process. */
export const ENDING_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
