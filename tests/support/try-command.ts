import type { Redis } from 'ioredis';

/** Sends a command. Returns `may`, `NOPERM` if an access list forbids it to the user, or another error. */
export async function tryCommand(redis: Redis, [name = '', ...args]: readonly string[]): Promise<string> {
  return redis.call(name, ...args).then(
    () => 'may',
    (error: Error) => (/NOPERM|user executing the script/.test(error.message) ? 'NOPERM' : error.message),
  );
}
