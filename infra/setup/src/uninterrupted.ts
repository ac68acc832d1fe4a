const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Does work that must not be left half done: signals that end this process take effect afterwards. Children need their
 * own process session, because a terminal sends Ctrl-C to all of its processes.
 */
export async function uninterrupted(work: () => Promise<void>): Promise<void> {
  const withheld = new Set<NodeJS.Signals>();
  const withhold = (signal: NodeJS.Signals) => withheld.add(signal);
  for (const signal of SIGNALS) process.on(signal, withhold);
  try {
    await work();
  } finally {
    for (const signal of SIGNALS) process.off(signal, withhold);
    // If the process handles the signal itself, its handler was called when the signal arrived.
    for (const signal of withheld) if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
  }
}
