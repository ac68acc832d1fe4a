import { readFileSync } from 'node:fs';
import { type ConnectFleet, openAccess } from '@shellfleet/access';
import { Fleet } from '@shellfleet/client';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { pino } from 'pino';
import { type ApiConfig, ApiConfigError, readApiConfig } from './config/config.ts';
import { serveWatchers } from './metrics/serve-watchers.ts';
import { createServer } from './serve.ts';
import { openApiTracing } from './tracing/open-tracing.ts';

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
const VERSION = (JSON.parse(manifest) as { version: string }).version;
/** How long the last spans may take to be exported. */
const TRACES_MS = 2_000;
/** Additional time for what does not end. Then the process exits. */
const EXIT_MS = 10_000;

/** Runs the server of a process by its environment, until a signal stops it. An error at the start ends the process. */
export async function startApi(): Promise<void> {
  process.title = 'shellfleet-api';
  try {
    await run(readApiConfig());
  } catch (error) {
    process.stderr.write(describeFailedStart(error));
    process.exit(error instanceof ApiConfigError ? 2 : 1);
  }
}

async function run(config: ApiConfig): Promise<void> {
  const log = pino({ level: config.logLevel, formatters: { level: (label) => ({ level: label }) } });
  const tracing = openApiTracing(config.tracing, VERSION, log);
  const fleet = await Fleet.connect();
  const access = openAccess(fleet, { oidc: config.oidc, log });
  const server = await createServer({
    access,
    fleet,
    connect: (identity) => Fleet.connect(identity),
    config,
    version: VERSION,
    log,
  });
  const port = await server.listen(config.port).catch((cause: NodeJS.ErrnoException) => {
    throw new ApiConfigError(
      `SHELLFLEET_API_PORT: cannot listen on port ${config.port} of ${config.host} (${cause.code})`,
    );
  });
  const url = `${config.tls === undefined ? 'http' : 'https'}://${toHost(config.host)}:${port}`;
  const watchers = config.metrics && (await serveWatchers(config.metrics, server.watched, log));
  log.info({ 'server.address': config.host, 'server.port': port }, 'api.listening');
  if (config.insecure) warnOfPlainHttp(config.host);
  let stopping = false;
  const stop = async () => {
    if (stopping) process.exit(1);
    stopping = true;
    setTimeout(() => process.exit(1), config.drainMs + EXIT_MS).unref();
    log.info('api.stopping');
    await server.drain(config.drainMs);
    await watchers?.close();
    await fleet.close();
    await tracing?.end(TRACES_MS);
    process.exit(0);
  };
  process.on('SIGTERM', () => void stop());
  process.on('SIGINT', () => void stop());
  // `serve` and `up` wait for this message.
  process.send?.({ type: 'ready', url });
}

const toHost = (host: string) => (host.includes(':') ? `[${host}]` : host);

function warnOfPlainHttp(host: string): void {
  process.stderr.write(
    `shellfleet: WARNING: the API listens on ${host} without TLS. Everybody on the way can read keys, scripts and output. Put a proxy with TLS in front of it, or set SHELLFLEET_API_TLS_CERT and SHELLFLEET_API_TLS_KEY.\n`,
  );
}

function describeFailedStart(error: unknown): string {
  if (error instanceof ApiConfigError) return `shellfleet: ${error.message}\n`;
  const { code, message, hint, stack } = ensureShellfleetError(error);
  return `${code === 'INTERNAL' ? `${stack}\n` : ''}shellfleet: ${message} ${hint}\n`;
}
