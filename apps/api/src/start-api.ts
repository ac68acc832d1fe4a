import { readFileSync } from 'node:fs';
import { openAccess } from '@shellfleet/access';
import { Fleet } from '@shellfleet/client';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { type ApiConfig, ApiConfigError, readApiConfig } from './config/config.ts';
import { openApiLog } from './log/open-api-log.ts';
import { serveWatchers } from './metrics/serve-watchers.ts';
import { type ApiServer, createServer } from './serve.ts';
import { openApiTracing } from './tracing/open-tracing.ts';

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
const VERSION = (JSON.parse(manifest) as { version: string }).version;
/** Port on which the server listens if the operator names none and no other program has it. */
const USUAL_PORT = 7410;
/** How long the last spans may take to be exported. */
const TRACES_MS = 2_000;
/** Additional time for what does not end. Then the process exits. */
const EXIT_MS = 10_000;

/** Runs the server of a process by its environment, until a signal stops it. An error at the start ends the process. */
export async function startApi(): Promise<void> {
  process.title = 'shellfleet-api';
  const alone = endWithoutSupervisor();
  try {
    await run(readApiConfig());
    alone.becomeReady();
  } catch (error) {
    process.stderr.write(describeFailedStart(error));
    process.exit(error instanceof ApiConfigError ? 2 : 1);
  }
}

/** Ends this process if its supervisor ends before the server is ready. A ready server goes on without a supervisor. */
function endWithoutSupervisor(): { becomeReady(): void } {
  const end = () => process.exit(1);
  process.once('disconnect', end);
  if (process.send !== undefined && !process.connected) end();
  return { becomeReady: () => void process.off('disconnect', end) };
}

async function run(config: ApiConfig): Promise<void> {
  const { log, flush } = openApiLog(config.logLevel);
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
    // Whoever started the process starts another one, which joins the fleet that there is now.
    onOtherFleet({ message }) {
      log.fatal({ problem: message }, 'api.other-fleet');
      flush();
      process.exit(1);
    },
  });
  const port = await listen(server, config);
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
    flush();
    process.exit(0);
  };
  process.on('SIGTERM', () => void stop());
  process.on('SIGINT', () => void stop());
  // `serve` and `up` wait for this message.
  process.send?.({ type: 'ready', url });
}

/** Listens on the configured port, else on the usual one or a free one. Returns the port. */
async function listen(server: ApiServer, { host, port }: ApiConfig): Promise<number> {
  try {
    return await server.listen(port ?? USUAL_PORT);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (port === undefined && code === 'EADDRINUSE') return server.listen(0);
    throw new ApiConfigError(
      `SHELLFLEET_API_PORT: cannot listen on port ${port ?? USUAL_PORT} of ${host} (${code}). Name another with --port, or 0 for a free one.`,
    );
  }
}

/** Returns the host of a URL by which this machine reaches the server. */
function toHost(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  const address = host === '::' ? '::1' : host;
  return address.includes(':') ? `[${address}]` : address;
}

function warnOfPlainHttp(host: string): void {
  process.stderr.write(
    `shellfleet: WARNING: the API listens on ${host} without TLS. Everybody on the way can read keys, scripts and output. Put a proxy with TLS in front of it, or set SHELLFLEET_API_TLS_CERT and SHELLFLEET_API_TLS_KEY.\n`,
  );
}

function describeFailedStart(error: unknown): string {
  if (error instanceof ApiConfigError) return `shellfleet: ${error.message}\n`;
  const { code, message, hint, stack } = ensureShellfleetError(error);
  // The message of an error without a Redis contains the next step. Its hint is for producers.
  const step = code === 'QUEUE_UNAVAILABLE' ? '' : ` ${hint}`;
  return `${code === 'INTERNAL' ? `${stack}\n` : ''}shellfleet: ${message}${step}\n`;
}
