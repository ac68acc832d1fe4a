import { describe, expect, test, vi } from 'vitest';
import { readCliConfig } from './config.ts';
import { runTraced } from './run-traced.ts';

vi.mock('./cli/program.ts', async (load) => ({ ...(await load<object>()), runCli: async () => 7 }));
vi.mock('@shellfleet/vendor/opentelemetry', () => ({
  startTracing: () => {
    throw new Error('this Node.js is too old');
  },
}));

describe('a call of the command line', () => {
  test('runs without tracing when tracing cannot start', async () => {
    const config = readCliConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
    if (config.tracing === undefined) throw new Error('tracing is off');
    expect(await runTraced(['ps'], config, config.tracing)).toBe(7);
  });
});
