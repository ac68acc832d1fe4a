import type { TracingChoice } from '@shellfleet/protocol';
import type { Tracing } from '@shellfleet/vendor/opentelemetry';
import type { Logger } from '../log/logger.ts';

/** Least time between two log lines about exports that fail. */
const LOG_EVERY_MS = 60_000;

/** Loads the SDK of OpenTelemetry if spans are asked for. If it cannot trace as asked, it logs why. */
export async function openTracing(
  choice: TracingChoice | string | undefined,
  about: { hostId: string; version: string },
  logger: Logger,
): Promise<Tracing | undefined> {
  if (choice === undefined) return undefined;
  if (typeof choice === 'string') {
    logger.warn({ problem: choice }, 'tracing.refused');
    return undefined;
  }
  let loggedAt = Number.NEGATIVE_INFINITY;
  const onError = (err: unknown) => {
    const now = performance.now();
    if (now - loggedAt < LOG_EVERY_MS) return;
    loggedAt = now;
    logger.warn({ err }, 'tracing.export-failed');
  };
  try {
    const { startTracing } = await import('@shellfleet/vendor/opentelemetry');
    const resource = {
      'service.name': 'shellfleet-worker',
      'service.version': about.version,
      'service.instance.id': about.hostId,
    };
    const tracing = startTracing({ ...choice, resource, onError });
    logger.info('tracing.started');
    return tracing;
  } catch (err) {
    logger.warn({ err }, 'tracing.refused');
    return undefined;
  }
}
