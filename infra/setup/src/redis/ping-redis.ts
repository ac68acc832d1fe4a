import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { RedisConfig } from './redis-config.ts';

/** Whether the Redis at this address knows the password and has loaded its data. */
function pingRedis({ port, password }: RedisConfig): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 2_000 });
    let answer = '';
    const end = (ready: boolean): void => {
      socket.destroy();
      resolve(ready);
    };
    socket.setEncoding('utf8').on('data', (text: string) => {
      answer += text;
      if (answer.includes('+PONG')) end(true);
      if (answer.includes('-')) end(false);
    });
    socket.on('connect', () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    socket.on('timeout', () => end(false));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
  });
}

/** Waits until Redis answers; `isGone` tells that it never will. */
export async function waitForRedis(config: RedisConfig, timeoutMs: number, isGone: () => boolean): Promise<boolean> {
  for (const giveUpAt = Date.now() + timeoutMs; Date.now() < giveUpAt; await delay(25)) {
    if (await pingRedis(config)) return true;
    if (isGone()) return false;
  }
  return false;
}
