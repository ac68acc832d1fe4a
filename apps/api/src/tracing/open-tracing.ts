import type { TracingChoice } from '@shellfleet/protocol';
import { carryContexts, startTracing, type Tracing } from '@shellfleet/vendor/opentelemetry';
import type { Logger } from 'pino';

/**
 * Starts the export of spans if it is asked for. Without it, the trace context of a request still reaches the hosts,
 * whose spans continue the trace.
 */
export function openApiTracing(
  choice: TracingChoice | string | undefined,
  version: string,
  log: Logger,
): Tracing | undefined {
  if (typeof choice === 'string') log.warn({ problem: choice }, 'tracing.refused');
  if (choice === undefined || typeof choice === 'string') {
    carryContexts();
    return undefined;
  }
  return startTracing({
    ...choice,
    resource: { 'service.name': 'shellfleet-api', 'service.version': version },
    onError: (err) => log.warn({ err }, 'tracing.export-failed'),
  });
}
