const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Does work that must not be left half done: until it has ended, the signals that ask this process to end wait. Then
 * they have their usual effect. Children need a process session of their own, because a terminal sends Ctrl-C to all
 * processes of its own.
 */
export async function uninterrupted(work: () => Promise<void>): Promise<void> {
  const withheld = new Set<NodeJS.Signals>();
  const withhold = (signal: NodeJS.Signals) => withheld.add(signal);
  for (const signal of SIGNALS) process.on(signal, withhold);
  try {
    await work();
  } finally {
    for (const signal of SIGNALS) process.off(signal, withhold);
    // Where the process handles the signal itself, its handler was called when the signal arrived.
    for (const signal of withheld) if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  }
}
