import type { Redis } from 'ioredis';

/**
 * Returns every key and value of a namespace as Redis stores them, in latin1, so that a test can search them for text
 * that must not be there.
 */
export async function everythingInRedis(redis: Redis, namespace: string): Promise<string> {
  const keys = await redis.keys(`${namespace}:*`);
  const values = await Promise.all(keys.map(async (key) => [key, await read(redis, key, await redis.type(key))]));
  return textOf(values);
}

function read(redis: Redis, key: string, type: string): Promise<unknown> {
  switch (type) {
    case 'string':
      return redis.getBuffer(key);
    case 'hash':
      return redis.callBuffer('HGETALL', key);
    case 'list':
      return redis.lrangeBuffer(key, 0, -1);
    case 'set':
      return redis.smembersBuffer(key);
    case 'zset':
      return redis.zrangeBuffer(key, '0', '-1');
    case 'stream':
      return redis.xrangeBuffer(key, '-', '+');
    case 'none':
      return Promise.resolve('');
    default:
      throw new Error(`${key} is a ${type}`);
  }
}

function textOf(value: unknown): string {
  if (Buffer.isBuffer(value)) return value.toString('latin1');
  return Array.isArray(value) ? value.map(textOf).join('\n') : String(value);
}
