import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../../support/until.ts';
import { type RedisProxy, startRedisProxy } from './redis-proxy.ts';

/** Server in place of Redis, which sends back all data that arrives. */
const echo = createServer((socket) => socket.on('error', () => {}).pipe(socket));
const arrived: string[] = [];
let proxy: RedisProxy;

beforeEach(async () => {
  arrived.length = 0;
  if (!echo.listening) await once(echo.listen(0, '127.0.0.1'), 'listening');
  const address = echo.address();
  proxy = await startRedisProxy(`redis://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`);
});
afterEach(() => proxy[Symbol.asyncDispose]());

async function open(): Promise<Socket> {
  const socket = dial(Number(new URL(proxy.url).port), '127.0.0.1');
  socket.on('error', () => {});
  socket.on('data', (data) => arrived.push(data.toString()));
  await once(socket, 'connect');
  return socket;
}

const untilArrived = (text: string) =>
  until(
    () => arrived.join(''),
    (all) => all === text,
  );

describe('the Redis proxy of the tests', () => {
  test('keeps the order of bytes when the latency becomes shorter', async () => {
    const socket = await open();
    proxy.delay(300);
    socket.write('first ');
    await delay(20);
    proxy.delay(0);
    socket.write('second');
    await untilArrived('first second');
  });

  test('drops one reply, and closes its connection', async () => {
    const socket = await open();
    proxy.loseReply();
    socket.write('lost');
    await once(socket, 'close');
    const next = await open();
    next.write('kept');
    await untilArrived('kept');
  });

  test('passes and closes nothing during a cut, and then resets the open connections', async () => {
    const socket = await open();
    let closed = false;
    socket.on('close', () => {
      closed = true;
    });
    proxy.cut();
    socket.write('lost');
    const during = await open();
    during.write('lost too');
    await delay(50);
    expect({ arrived, closed }).toEqual({ arrived: [], closed: false });
    proxy.mend();
    await until(
      () => closed,
      (isClosed) => isClosed,
    );
    (await open()).write('kept');
    await untilArrived('kept');
  });
});
