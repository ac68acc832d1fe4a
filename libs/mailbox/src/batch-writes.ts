import type { Redis } from 'ioredis';

/**
 * What is sent within one turn of the event loop leaves in one write. Redis then wakes once for all of it, and so does
 * this process; a command that is alone waits for nothing, because the turn ends with it. Unlike auto-pipelining this
 * knows nothing of commands: order and replies stay as they are.
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
