import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** The connection of one process to Redis, in which a fault can delay, drop and cut. */
export interface RedisProxy extends AsyncDisposable {
  readonly url: string;
  /** Stops all data in both directions until mend(). No connection is closed. */
  cut(): void;
  /** Ends a cut, and resets the connections that were open during it: data sent on them is lost. */
  mend(): void;
  /** Delays data in each direction by this time from now on. */
  delay(ms: number): void;
  /** Drops the next reply and closes its connection: Redis has run the call, and the caller cannot tell. */
  loseReply(): void;
}

export async function startRedisProxy(redisUrl: string): Promise<RedisProxy> {
  const { hostname, port } = new URL(redisUrl);
  const pairs = new Set<[Socket, Socket]>();
  let isCut = false;
  let delayMs = 0;
  let repliesToLose = 0;

  const server = createServer((client) => {
    const upstream = dial(Number(port), hostname);
    const pair: [Socket, Socket] = [client, upstream];
    pairs.add(pair);
    const end = () => {
      if (isCut) return;
      client.destroy();
      upstream.destroy();
      pairs.delete(pair);
    };
    for (const socket of pair) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
      socket.on('close', end);
    }
    forward(client, upstream);
    forward(upstream, client, () => {
      if (repliesToLose === 0) return false;
      repliesToLose -= 1;
      end();
      return true;
    });
  });

  /** Forwards data in order, also when the latency has become shorter. */
  const forward = (from: Socket, to: Socket, drops: () => boolean = () => false) => {
    let arrived = Promise.resolve();
    from.on('data', (data: Buffer) => {
      if (isCut || drops()) return;
      const waiting = delayMs === 0 ? undefined : delay(delayMs);
      arrived = arrived.then(async () => {
        await waiting;
        if (isCut || to.destroyed || to.write(data)) return;
        from.pause();
        to.once('drain', () => from.resume());
      });
    });
  };

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  const url = new URL(redisUrl);
  url.port = String(address.port);
  const reset = () => {
    for (const pair of pairs) for (const socket of pair) socket.destroy();
    pairs.clear();
  };
  return {
    url: url.href.replace(/\/$/, ''),
    cut: () => {
      isCut = true;
    },
    mend: () => {
      isCut = false;
      reset();
    },
    delay: (ms) => {
      delayMs = ms;
    },
    loseReply: () => {
      repliesToLose += 1;
    },
    async [Symbol.asyncDispose]() {
      reset();
      server.close();
      await once(server, 'close');
    },
  };
}
