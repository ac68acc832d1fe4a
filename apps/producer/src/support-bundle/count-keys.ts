import { type Connected, mastersOf } from '@shellfleet/redis';

type Redis = Connected['redis'];

const KEYS_IN_CALL = 1_000;
/** Most keys that are counted on a node. */
const MOST_KEYS = 500_000;
/** Keys of each kind whose memory is measured. */
const MEASURED = 20;

/** Keys of one kind, such as `{session}:record:*`. */
export interface KeyKind {
  kind: string;
  keys: number;
  /** Average memory of the first keys. */
  averageBytes: number;
}

/** Counts the keys of a namespace by kind. Names of sessions, tenants and hosts are not part of a kind. */
export async function countKeys(redis: Redis, namespace: string): Promise<{ kinds: KeyKind[]; isWhole: boolean }> {
  const counts = new Map<string, { keys: number; bytes: number[] }>();
  let isWhole = true;
  for (const node of mastersOf(redis)) {
    let cursor = '0';
    let seen = 0;
    do {
      const [next, keys] = await node.scan(cursor, 'MATCH', `${namespace}:*`, 'COUNT', KEYS_IN_CALL);
      for (const key of keys) await count(node, key, counts);
      seen += keys.length;
      cursor = next;
      if (seen >= MOST_KEYS) isWhole = false;
    } while (cursor !== '0' && seen < MOST_KEYS);
  }
  const kinds = [...counts].map(([kind, { keys, bytes }]) => ({
    ...{ kind, keys },
    averageBytes: Math.round(bytes.reduce((sum, size) => sum + size, 0) / Math.max(1, bytes.length)),
  }));
  return { kinds: kinds.sort((a, b) => b.keys - a.keys), isWhole };
}

async function count(node: Redis, key: string, counts: Map<string, { keys: number; bytes: number[] }>) {
  const kind = kindOf(key);
  const found = counts.get(kind) ?? { keys: 0, bytes: [] };
  counts.set(kind, found);
  found.keys += 1;
  if (found.bytes.length < MEASURED) found.bytes.push(Number(await node.memory('USAGE', key)) || 0);
}

/** Returns the name of a key without what differs between sessions, tenants, hosts and entries. */
export function kindOf(key: string): string {
  const [, inner, rest = ''] = /^.*?\{([^}]*)\}:(.*)$/.exec(key) ?? [];
  if (inner === undefined) return '(other)';
  const owner = inner === 'x0' ? 'fleet' : inner.endsWith(':') ? 'tenant' : inner.includes('/') ? 'batch' : 'session';
  const [name = '', ...more] = rest.split(':');
  return `{${owner}}:${[name, ...more.map((word) => (FIXED_WORDS.has(word) ? word : '*'))].join(':')}`;
}

/** Words of key names behind the first one. Anything else there is an id. */
const FIXED_WORDS = new Set([
  'alive',
  'boot',
  'audit',
  'input',
  'output',
  'quotas',
  'disk',
  'calls',
  'waiting',
  'state',
]);
