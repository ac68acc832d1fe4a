import { readFileSync } from 'node:fs';
import { type SessionId, ShellfleetError, sessionIdSchema } from '@shellfleet/protocol';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Context } from './context.ts';
import { ENDING_SIGNALS } from './ending-signals.ts';
import { addSessionFlags, type SessionFlags, toSpec } from './session-flags.ts';
import { parseDuration } from './units.ts';

/** Time in ms in which a call is answered. Clients give calls up after 60 s, and some after 45 s. */
const ANSWER_MS = 40_000;
const PORT = 7411;

interface McpFlags extends SessionFlags {
  session?: string;
  answerWithin: number;
  http?: boolean;
  host: string;
  port: number;
  tlsCert?: Buffer;
  tlsKey?: Buffer;
  insecureHttp?: boolean;
  allowedHost?: string[];
}

export function registerMcp(program: Command, context: Context): void {
  const verb = program
    .command('mcp')
    .description('serve models over MCP, on stdin and stdout or HTTP; docs/mcp.md has the lines for each client')
    .addOption(
      new Option('--session <name>', 'session of calls that name none; default: a new one')
        .argParser(parseSession)
        .env('SHELLFLEET_MCP_SESSION'),
    )
    .addOption(
      new Option('--answer-within <time>', 'time until a call is answered, with the id of its command if it still runs')
        .argParser(parseDuration)
        .default(ANSWER_MS, '40s')
        .env('SHELLFLEET_MCP_ANSWER_WITHIN'),
    )
    .addOption(
      new Option('--http', 'serve streamable HTTP, with API keys, in place of stdin and stdout').env(
        'SHELLFLEET_MCP_HTTP',
      ),
    )
    .addOption(
      new Option('--host <address>', 'address on which to listen').default('127.0.0.1').env('SHELLFLEET_MCP_HOST'),
    )
    .addOption(
      new Option('--port <n>', 'port on which to listen; 0: a free one')
        .argParser(parsePort)
        .default(PORT)
        .env('SHELLFLEET_MCP_PORT'),
    )
    .addOption(
      new Option('--tls-cert <file>', 'certificate chain (PEM)').argParser(readPem).env('SHELLFLEET_MCP_TLS_CERT'),
    )
    .addOption(new Option('--tls-key <file>', 'its private key (PEM)').argParser(readPem).env('SHELLFLEET_MCP_TLS_KEY'))
    .addOption(
      new Option('--insecure-http', 'allow another address than loopback without TLS').env(
        'SHELLFLEET_MCP_INSECURE_HTTP',
      ),
    )
    .addOption(
      new Option('--allowed-host <names>', 'further names by which clients address it, separated by commas')
        .argParser((text) => text.split(',').map((name) => name.trim().toLowerCase()))
        .env('SHELLFLEET_MCP_ALLOWED_HOSTS'),
    );
  addSessionFlags(verb, context.config.env).action((flags: McpFlags) => serve(program, context, flags));
}

async function serve(program: Command, { config, terminal }: Context, flags: McpFlags): Promise<void> {
  const { serveMcpOverHttp, serveMcpOverStdio, readOidc } = await import('@shellfleet/mcp');
  const ending = new AbortController();
  for (const signal of ENDING_SIGNALS) process.once(signal, () => ending.abort());
  const { redisUrl, namespace, tenant } = program.opts<{ redisUrl?: string; namespace?: string; tenant?: string }>();
  const connect = { ...(redisUrl ? { redisUrl } : {}), ...(namespace ? { namespace } : {}) };
  const settings = {
    version: config.version,
    spec: toSpec(flags) ?? {},
    session: flags.session,
    answerWithinMs: flags.answerWithin,
    log: (line: string) => terminal.say(line),
  };
  if (!flags.http) {
    const apiKey = config.env.SHELLFLEET_API_KEY || undefined;
    const identity = { apiKey, connect: { ...connect, ...(tenant ? { tenant } : {}) } };
    return serveMcpOverStdio(settings, identity, ending.signal);
  }
  const http = { ...toHttpSettings(flags), oidc: readOidc(config.env) };
  if (http.insecureHttp && http.tls === undefined)
    terminal.say(`WARNING: ${http.host} has no TLS. Everybody on the way can read keys, scripts and output.`);
  const onListening = (url: string) => terminal.say(`MCP is served at ${url}.`);
  return serveMcpOverHttp(settings, http, connect, { signal: ending.signal, onListening });
}

function toHttpSettings({ host, port, tlsCert, tlsKey, insecureHttp, allowedHost }: McpFlags) {
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw new ShellfleetError('COMMAND_INVALID', 'Give --tls-cert and --tls-key together.');
  const tls = tlsCert === undefined || tlsKey === undefined ? undefined : { cert: tlsCert, key: tlsKey };
  return { host, port, tls, insecureHttp: insecureHttp === true, allowedHosts: allowedHost ?? [] };
}

function parseSession(name: string): SessionId {
  const parsed = sessionIdSchema.safeParse(name);
  if (!parsed.success) throw new InvalidArgumentError(`It ${parsed.error.issues[0]?.message}.`);
  return parsed.data;
}

function readPem(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new InvalidArgumentError(`It cannot be read: ${(error as Error).message}.`);
  }
}

function parsePort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new InvalidArgumentError('Give a port from 0 to 65535.');
}
