/** Time between two readings, in ms. Prometheus reads every 15 or 60 s unless it is configured otherwise. */
const EVERY_MS = 5_000;

/** Reads the metrics at a port until it is disposed. Reports readings that fail. */
export function scrape(port: number, report: (line: string) => void): Disposable {
  const read = async () => {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, { signal: AbortSignal.timeout(EVERY_MS) });
    if (!response.ok) throw new Error(`/metrics answered ${response.status}`);
    await response.text();
  };
  const timer = setInterval(() => void read().catch((error) => report(`Metrics: ${error}`)), EVERY_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
