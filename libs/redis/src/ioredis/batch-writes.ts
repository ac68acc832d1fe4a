import type { Redis } from 'ioredis';

/**
 * Combines the data of one turn of the event loop into one write, so that Redis and this process wake once. A single
 * command is not delayed, because the turn ends with it. Order and replies stay the same, unlike with auto-pipelining.
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
