import type { Redis } from 'ioredis';

/**
 * Combines all data that is sent within one turn of the event loop into one write. Redis and this process then wake once for all of it. A
 * single command is not delayed, because the turn ends with it. Unlike auto-pipelining, this does not look at the commands: order and
 * replies stay the same.
 */
export function batchWrites(redis: Redis): void {
  redis.on('connect', () => {
    const { stream } = redis as unknown as { stream: NodeJS.WritableStream & { cork(): void; uncork(): void } };
    const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
    let corked = false;
    stream.write = ((...args: unknown[]) => {
      if (!corked) {
        corked = true;
        stream.cork();
        setImmediate(() => {
          corked = false;
          stream.uncork();
        });
      }
      return write(...args);
    }) as typeof stream.write;
  });
}
