import { readFileSync } from 'node:fs';
import { ShellfleetError } from '@shellfleet/protocol';

/** The parts of SHELLFLEET_REDIS_URL. */
export type RedisAddress = Common &
  (
    | { kind: 'single'; db: number }
    /** The Sentinels in `nodes` watch the primary with the name `name`. */
    | { kind: 'sentinel'; db: number; name: string; sentinel: Credentials }
    /** `nodes` are some nodes of the cluster. These nodes report the other nodes. */
    | { kind: 'cluster' }
  );

type Common = Credentials & { nodes: readonly RedisNode[]; tls?: TlsFiles; family?: 4 | 6 };

interface Credentials {
  username?: string;
  password?: string;
}

interface RedisNode {
  host: string;
  port: number;
}

/** PEM texts. Without `ca`, Node's certificate authorities apply (NODE_EXTRA_CA_CERTS adds to them). */
interface TlsFiles {
  ca?: string;
  cert?: string;
  key?: string;
}

const FORM = /^redis(s)?(?:\+(sentinel|cluster))?:\/\/(?:([^@/?#]*)@)?([^@/?#]*)(\/[^?#]*)?(?:\?([^#]*))?$/;
const PARAMETERS = ['ca', 'cert', 'key', 'family', 'sentinel-user', 'sentinel-password'];
const DEFAULT_PORT = { single: 6379, cluster: 6379, sentinel: 26379 } as const;

/**
 * Parses the URL. Throws REDIS_UNSUITABLE for an unknown form or an unreadable file. The error does not contain the
 * URL.
 */
export function parseRedisUrl(url: string): RedisAddress {
  const match = FORM.exec(url);
  if (match === null) throw refuse();
  const [, secure, mode, user = '', hosts = '', path = '', query = ''] = match;
  const kind = (mode ?? 'single') as RedisAddress['kind'];
  const nodes = hosts.split(',').map((host) => parseNode(host, DEFAULT_PORT[kind]));
  if (kind === 'single' && nodes.length > 1) throw refuse();
  const given = parseParameters(query);
  if (secure === undefined && (given.has('ca') || given.has('cert') || given.has('key')))
    throw refuse('ca, cert and key need a rediss:// URL');
  const common: Common = {
    ...parseUser(user),
    nodes,
    ...(secure === undefined ? {} : { tls: readTlsFiles(given) }),
    ...(given.has('family') ? { family: given.get('family') === '6' ? 6 : 4 } : {}),
  };
  const parts = path.split('/').slice(1);
  if (kind === 'sentinel') {
    const [name = '', db, ...rest] = parts;
    if (name === '' || rest.length > 0) throw refuse('a sentinel URL names its primary, as in /mymaster');
    const sentinel = credentials(given.get('sentinel-user') ?? '', given.get('sentinel-password') ?? '');
    return { kind, ...common, name: decode(name), db: parseDatabase(db), sentinel };
  }
  if (parts.length > 1) throw refuse();
  const db = parseDatabase(parts[0]);
  if (kind === 'single') return { kind, ...common, db };
  if (db !== 0) throw refuse('a Cluster has only database 0');
  return { kind, ...common };
}

/** Returns the address for messages, without secrets and parameters. Throws REDIS_UNSUITABLE as `parseRedisUrl`. */
export function describeRedis(url: string): string {
  const address = parseRedisUrl(url);
  const nodes = address.nodes.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',');
  if (address.kind === 'single') return nodes;
  return address.kind === 'cluster' ? `${nodes} (Cluster)` : `${nodes} (Sentinel, ${address.name})`;
}

function parseNode(text: string, defaultPort: number): RedisNode {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]]*))(?::(\d{1,5}))?$/.exec(text);
  const port = Number(match?.[3] ?? defaultPort);
  if (match === null || port > 65_535) throw refuse();
  return { host: match[1] ?? (decode(match[2] ?? '') || 'localhost'), port };
}

function parseUser(text: string): Credentials {
  const at = text.indexOf(':');
  return credentials(decode(at < 0 ? text : text.slice(0, at)), at < 0 ? '' : decode(text.slice(at + 1)));
}

function credentials(username: string, password: string): Credentials {
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

function parseDatabase(text = ''): number {
  if (!/^\d{0,6}$/.test(text)) throw refuse();
  return Number(text);
}

function parseParameters(query: string): URLSearchParams {
  const given = new URLSearchParams(query);
  for (const name of given.keys()) {
    if (!PARAMETERS.includes(name)) throw refuse(`the parameters are ${PARAMETERS.join(', ')}`); // a name may hold a part of a password
  }
  return given;
}

function readTlsFiles(given: URLSearchParams): TlsFiles {
  const files: TlsFiles = {};
  for (const name of ['ca', 'cert', 'key'] as const) {
    const path = given.get(name);
    if (path === null) continue;
    try {
      files[name] = readFileSync(path, 'utf8');
    } catch (error) {
      throw refuse(`its ${name} file ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  return files;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw refuse();
  }
}

function refuse(reason?: string): ShellfleetError {
  const forms =
    'The Redis URL is not of the form redis://[user:password@]host:port[/db], redis+sentinel://host:port,host:port/name[/db] or redis+cluster://host:port,host:port (rediss for TLS)';
  return new ShellfleetError(
    'REDIS_UNSUITABLE',
    `${forms}${reason === undefined ? '' : `: ${reason}`}. Check SHELLFLEET_REDIS_URL.`,
  );
}
